// Reads a request body: its media type, strict JSON, then the declared schema, with a sentence for whatever is wrong.
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { ApiError } from '../errors.ts'
import { JsonError, type JsonValue, readJson } from '../json/read.ts'
import type { Schema } from '../shape/schema.ts'
import { shorten } from '../text.ts'

interface Finding {
  keyword: string
  instancePath: string
  params: Record<string, unknown>
}

/** Refuses a body that says it is anything but JSON in UTF-8; saying nothing is fine. */
export function checkMediaType(contentType: string | undefined): void {
  if (contentType === undefined) return
  const [type, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase())
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '')
  if (type === 'application/json' && (charset === undefined || charset === 'utf-8' || charset === 'utf8')) return
  throw wrongMediaType(contentType)
}

export function wrongMediaType(contentType = ''): ApiError {
  return new ApiError(
    415,
    'unsupported_media_type',
    `A body must be application/json in UTF-8, not "${shorten(contentType, 64)}".`,
  )
}

/** The JSON of a body, or a 400 that says where it is wrong. With `exact`, numbers keep their text. */
export function parseBody(bytes: Uint8Array, { exact = false } = {}): JsonValue {
  if (bytes.length === 0) throw noBody()
  try {
    return readJson(bytes, { exact })
  } catch (error) {
    if (error instanceof JsonError)
      throw new ApiError(400, 'invalid_json', `The body is not valid JSON: ${error.message}.`)
    throw error
  }
}

export function noBody(): ApiError {
  return new ApiError(400, 'body_required', 'A body is required: a JSON object.')
}

/** A check of parsed bodies by `schema`: answers nothing, or throws a 400 that names the property and the rule. */
export function bodyCheck(schema: Schema): (value: unknown) => void {
  // Compiled when the first body comes: all at once they would be a good part of a start.
  let compiled: ValidateFunction | undefined
  return (value) => {
    compiled ??= ajv.compile(schema)
    if (compiled(value)) return
    const findings = compiled.errors as Finding[]
    // A union reports each branch first and then itself.
    throw refusal(findings.at(-1)!, value)
  }
}

// Lengths are counted in code points. One finding is enough for one sentence. Our own schemas need no check themselves,
// and what checks schemas takes longer to make than all of them.
const ajv = addFormats.default(
  new Ajv({
    allErrors: false,
    allowUnionTypes: true,
    strict: 'log',
    logger: false,
    meta: false,
    validateSchema: false,
  }),
)

const PHRASES: Record<string, (params: Record<string, unknown>) => string> = {
  type: ({ type }) => `must be ${article([type].flat().join(' or '))}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as unknown[]).join(', ')}`,
  const: ({ allowedValue }) => `must be ${String(allowedValue)}`,
  anyOf: () => 'is of the wrong type or not one of the allowed values',
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  exclusiveMinimum: ({ limit }) => `must be greater than ${limit}`,
  minLength: ({ limit }) => (limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`),
  maxLength: ({ limit }) => `must have at most ${limit} characters`,
  minItems: ({ limit }) => `must have at least ${limit} ${limit === 1 ? 'item' : 'items'}`,
  maxItems: ({ limit }) => `must have at most ${limit} items`,
  maxProperties: ({ limit }) => `must have at most ${limit} properties`,
  format: ({ format }) => `must be a valid ${format}`,
  pattern: () => 'is not of the required form',
}

function refusal({ instancePath: path, keyword, params }: Finding, value: unknown): ApiError {
  if (keyword === 'required') {
    return new ApiError(400, 'property_required', `${name(`${path}/${params.missingProperty}`)} is required.`)
  }
  if (keyword === 'additionalProperties') {
    const unknown = shorten(name(`${path}/${params.additionalProperty}`), 64)
    return new ApiError(400, 'unknown_property', `Unknown property "${unknown}".`)
  }
  const phrase = PHRASES[keyword]?.(params) ?? 'is not valid'
  return new ApiError(400, 'invalid_property', `${name(path)} ${phrase}, not ${came(at(value, path))}.`)
}

/** `/profile_ids/1` → `profile_ids[1]`; the whole body is "The body". */
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

/** What came, unless it is long: then its kind and size. */
function came(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value === 'string')
    return value.length > 64 ? `a text of ${value.length} characters` : JSON.stringify(value)
  return String(value)
}

const article = (noun: string) => (/^[aeio]/.test(noun) ? `an ${noun}` : noun === 'null' ? noun : `a ${noun}`)
