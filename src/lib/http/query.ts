// Reads a query string by its schema: every rule is enforced, and unknown or repeated parameters are refused.
import { ApiError, invalidParameter } from '../errors.ts'
import type { ObjectSchema } from '../shape/schema.ts'
import { countCharacters, shorten } from '../text.ts'
import { readQueryInstant, TimeError } from '../time.ts'
import { phraseOf } from './rule-phrases.ts'

interface ParameterSchema {
  type?: string
  format?: string
  enum?: readonly string[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  default?: unknown
}

/**
 * The parameters of a raw query string (without "?"), each read by its type in `schema`, defaults filled in; date-times
 * in canonical form. Throws a 400 that names the parameter.
 */
export function readQuery(schema: ObjectSchema, raw: string): Record<string, unknown> {
  const properties = schema.properties as Record<string, ParameterSchema>
  const values: Record<string, unknown> = {}
  for (const [name, text] of pairs(raw)) {
    const parameter = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!parameter) throw new ApiError(400, 'unknown_parameter', unknownParameter(name, Object.keys(properties)))
    if (name in values)
      throw new ApiError(400, 'repeated_parameter', `The query parameter ${name} is given more than once.`)
    values[name] = readParameter(name, parameter, text)
  }
  for (const [name, { default: fallback }] of Object.entries(properties)) {
    if (fallback !== undefined && !(name in values)) values[name] = fallback
  }
  for (const name of schema.required ?? []) {
    if (!(name in values)) throw new ApiError(400, 'parameter_required', `The query parameter ${name} is required.`)
  }
  return values
}

function* pairs(raw: string): Iterable<[name: string, text: string]> {
  if (raw === '') return
  for (const part of raw.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decode(equals < 0 ? part : part.slice(0, equals), 'The name of a query parameter')
    yield [name, equals < 0 ? '' : decode(part.slice(equals + 1), `The query parameter ${shorten(name, 64)}`)]
  }
}

/** `what` begins the sentence of a refusal. */
function decode(text: string, what: string): string {
  let decoded: string
  try {
    decoded = decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new ApiError(400, 'invalid_query_string', `${what} is not valid UTF-8 in percent-encoding.`)
  }
  if (decoded.includes('\u0000'))
    throw new ApiError(400, 'invalid_query_string', `${what} contains the character U+0000.`)
  return decoded
}

function unknownParameter(name: string, known: string[]): string {
  const names = known.length > 0 ? `the parameters are ${known.join(', ')}` : 'this endpoint has none'
  return `Unknown query parameter "${shorten(name, 64)}": ${names}.`
}

function readParameter(name: string, parameter: ParameterSchema, text: string): unknown {
  if (text === '') throw invalidParameter(`${name} must not be empty.`)
  if (parameter.type === 'integer') return readInteger(name, parameter, text)
  if (parameter.type === 'boolean') return readChoice(name, ['true', 'false'], text) === 'true'
  if (parameter.enum) return readChoice(name, parameter.enum, text)
  if (parameter.format === 'date-time') return readDateTime(name, text)
  return readText(name, parameter, text)
}

function readText(
  name: string,
  { minLength = 1, maxLength = Infinity, pattern }: ParameterSchema,
  text: string,
): string {
  const length = countCharacters(text)
  if (length < minLength) throw invalid(name, phraseOf('minLength', { limit: minLength }), text)
  if (length > maxLength) throw invalid(name, phraseOf('maxLength', { limit: maxLength }), text)
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text)) {
    throw invalid(name, phraseOf('pattern', { pattern }), text)
  }
  return text
}

function readInteger(
  name: string,
  { minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: ParameterSchema,
  text: string,
): number {
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN
  if (value >= minimum && value <= maximum) return value
  throw invalid(name, `must be a whole number from ${minimum} to ${maximum}`, text)
}

function readChoice(name: string, choices: readonly string[], text: string): string {
  if (choices.includes(text)) return text
  throw invalid(name, phraseOf('enum', { allowedValues: choices }), text)
}

function readDateTime(name: string, text: string): string {
  try {
    return readQueryInstant(text)
  } catch (error) {
    if (!(error instanceof TimeError)) throw error
    throw invalid(name, error.message, text)
  }
}

function invalid(name: string, rule: string, text: string): ApiError {
  return invalidParameter(`${name} ${rule}, got "${shorten(text, 64)}".`)
}
