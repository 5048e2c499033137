// Reads the values of command options by the schema of their operation, and names their placeholders in help.
import { UsageError } from '../../lib/errors.ts'
import { isJsonObject, JsonError, type JsonObject, readJson } from '../../lib/json/read.ts'
import { shorten } from '../../lib/text.ts'

export interface Schema {
  type?: string | string[]
  description?: string
  enum?: string[]
  format?: string
  default?: unknown
  examples?: unknown[]
}

// Options without a value: giving one makes it true.
export const FLAGS = new Set(['with_twins'])

/** A value of a body as its schema has it; lists are written with commas, objects as JSON, and what may be null as `none`. */
export function readValue(name: string, { type }: Schema, text: string): unknown {
  if (isNullable(type) && text === 'none') return null
  if (type === 'object') return readObject(name, text)
  if (type === 'array') return text === '' ? [] : text.split(',').map((one) => one.trim())
  if (type === 'boolean') {
    if (FLAGS.has(name)) return true
    if (text === 'true' || text === 'false') return text === 'true'
    throw new UsageError(`${name} must be true or false, got "${text}".`)
  }
  if (type === 'integer') {
    if (/^[0-9]{1,15}$/.test(text)) return Number(text)
    throw new UsageError(`${name} must be a whole number, got "${text}".`)
  }
  return text
}

function readObject(name: string, text: string): JsonObject {
  try {
    const value = readJson(text)
    if (isJsonObject(value)) return value
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
  }
  throw new UsageError(`${name} must be a JSON object such as '{"job": 8812}', got "${shorten(text, 64)}".`)
}

const isNullable = (type: unknown) => Array.isArray(type) && type.includes('null')

export function placeholderOf(name: string, { type, enum: choices, format }: Schema): string {
  if (choices) return isLong(choices) ? 'value' : choices.join('|')
  const none = isNullable(type) ? '|none' : ''
  if (format === 'date-time') return `time${none}`
  if (name.endsWith('_id')) return 'id'
  return `${VALUES[String(type)] ?? 'value'}${none}`
}

// More would leave no room for the descriptions next to the options.
export const isLong = (choices: string[]) => choices.join('|').length > 40

const VALUES: Record<string, string> = { boolean: 'true|false', integer: 'number', array: 'list', object: 'json' }
