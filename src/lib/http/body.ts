// Reads a request body: checks its media type, parses strict JSON, validates it by the schema; each error is a sentence.
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { ApiError } from '../errors.ts'
import { JsonError, type JsonValue, NumberRangeError, pathOfNumber, readJson } from '../json/read.ts'
import type { Schema } from '../shape/schema.ts'
import { countCharacters, shorten } from '../text.ts'
import { readInstant, TimeError } from '../time.ts'
import { phraseOf } from './rule-phrases.ts'

interface Finding {
  keyword: string
  instancePath: string
  params: Record<string, unknown>
  /** The schema that has the keyword. */
  parentSchema: { properties?: object; additionalProperties?: unknown }
}

/** Refuses a body with a Content-Type other than JSON, or one of `accepted`, in UTF-8; none is fine. `others`: what else the route takes. */
export function checkMediaType(
  contentType: string | undefined,
  others: readonly string[] = [],
  accepted: readonly string[] = ['application/json'],
): void {
  if (contentType === undefined) return
  const [type, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase())
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '')
  if (accepted.includes(type!) && (charset === undefined || charset === 'utf-8' || charset === 'utf8')) return
  throw wrongMediaType(contentType, others)
}

/** Refuses a compressed body: the size limit would not apply to its content. */
export function checkContentEncoding(encoding: string | undefined, accepted: readonly string[] = ['identity']): void {
  if (encoding === undefined || accepted.includes(encoding.toLowerCase())) return
  throw new ApiError(
    415,
    'unsupported_content_encoding',
    `Content-Encoding must be ${accepted.join(' or ')}, got "${shorten(encoding, 64)}".`,
  )
}

/** Refuses a coding before chunked, such as `gzip, chunked`: Node only removes the chunks. Without chunked, Node refuses it. */
export function checkTransferEncoding(encoding: string | undefined): void {
  if (encoding === undefined || !/.chunked$/i.test(encoding)) return
  throw new ApiError(400, 'invalid_http', `Transfer-Encoding must be chunked, got "${shorten(encoding, 64)}".`)
}

/** `others`: what else the route takes. */
export function wrongMediaType(contentType = '', others: readonly string[] = []): ApiError {
  return new ApiError(
    415,
    'unsupported_media_type',
    `A body must be ${['application/json in UTF-8', ...others].join(' or ')}, got "${shorten(contentType, 64)}".`,
  )
}

/** Parses the JSON of a body, or throws a 400 with the position of the error. Numbers keep their text. */
export function parseBody(bytes: Uint8Array): JsonValue {
  if (bytes.length === 0) throw noBody()
  try {
    return readJson(bytes, { exact: true })
  } catch (error) {
    if (error instanceof NumberRangeError) refuseNumber(Buffer.from(bytes).toString(), error)
    if (error instanceof JsonError)
      throw new ApiError(400, 'invalid_json', `The body is not valid JSON: ${error.message}.`)
    throw error
  }
}

/** Refuses a number that is out of range by the name of its property, if the JSON is valid otherwise. */
function refuseNumber(text: string, error: NumberRangeError): void {
  const field = pathOfNumber(text, error)
  if (!field) return
  const got = shorten(text.slice(error.start, error.end), 64)
  const place = field.startsWith('[') ? `body${field}` : field
  throw new ApiError(400, 'invalid_property', `${shorten(place, 64)} ${error.rule}, got ${got}.`)
}

export function noBody(): ApiError {
  return new ApiError(400, 'body_required', 'A body is required: a JSON object.')
}

/** Returns a check of parsed bodies by `schema`, which throws a 400 that names the property and the rule. */
export function bodyCheck(schema: Schema): (value: unknown) => void {
  // Compiled at the first body: compiling all schemas would take a large part of the start.
  let compiled: ValidateFunction | undefined
  return (value) => {
    compiled ??= ajv.compile(schema)
    if (compiled(value)) return
    const findings = compiled.errors as Finding[]
    // A union reports each branch first and then itself.
    throw refusal(findings.at(-1)!, value)
  }
}

// Lengths are counted in code points. One finding is enough for one sentence. Our own schemas are not checked: the
// meta-schema takes longer to compile than all of them.
const ajv = addFormats.default(
  new Ajv({
    allErrors: false,
    allowUnionTypes: true,
    strict: 'log',
    logger: false,
    meta: false,
    validateSchema: false,
    verbose: true,
  }),
)
// The format of ajv-formats takes 59.9999999999999999 seconds for 60, and does not say which rule is broken.
ajv.addFormat('date-time', (text) => timeProblem(text) === undefined)

function refusal({ instancePath: path, keyword, params, parentSchema }: Finding, value: unknown): ApiError {
  const found = at(value, path)
  const known = Object.keys(parentSchema.properties ?? {})
  if (keyword === 'required') {
    // It may be the required property with a typing error.
    const unknown = Object.keys(found as object).find((key) => !known.includes(key))
    if (unknown !== undefined && parentSchema.additionalProperties === false)
      return unknownProperty(path, unknown, known)
    return new ApiError(400, 'property_required', `${name(`${path}/${params.missingProperty}`)} is required.`)
  }
  if (keyword === 'additionalProperties') {
    return unknownProperty(path, params.additionalProperty as string, known)
  }
  const isTime = keyword === 'format' && params.format === 'date-time'
  const phrase = isTime ? timeProblem(found as string) : phraseOf(keyword, params)
  const got = keyword === 'minItems' || keyword === 'maxItems' ? (found as unknown[]).length : describe(found)
  return new ApiError(400, 'invalid_property', `${name(path)} ${phrase}, got ${got}.`)
}

/** `path` is that of the object. */
function unknownProperty(path: string, key: string, known: string[]): ApiError {
  const unknown = path === '' ? key : `${name(path)}.${key}`
  const names = known.length > 0 ? `: the properties are ${known.join(', ')}` : ''
  return new ApiError(400, 'unknown_property', `Unknown property "${shorten(unknown, 64)}"${names}.`)
}

/** The rule of date-times that the text breaks, or undefined. */
function timeProblem(text: string): string | undefined {
  try {
    readInstant(text)
    return undefined
  } catch (error) {
    if (error instanceof TimeError) return error.message
    throw error
  }
}

/** `/ids/1` → `ids[1]`; the whole body is "The body". */
function name(path: string): string {
  if (path === '') return 'The body'
  return keys(path)
    .map((key, n) => (/^[0-9]+$/.test(key) ? `[${key}]` : `${n === 0 ? '' : '.'}${key}`))
    .join('')
}

const keys = (path: string) =>
  path
    .slice(1)
    .split('/')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))

function at(value: unknown, path: string): unknown {
  if (path === '') return value
  return keys(path).reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value)
}

/** The value, or its type when it is long. */
function describe(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value === 'string')
    return value.length > 64 ? `a string of ${countCharacters(value)} characters` : JSON.stringify(value)
  return String(value)
}
