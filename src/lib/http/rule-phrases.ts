// The phrase of each JSON Schema rule in error sentences, for bodies and query strings.

// Patterns with a phrase, because the pattern itself is hard to read.
export const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
export const NO_CONTROL_CHARACTERS = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$'
/** The rule of `isName`, for the description. */
export const NAME_PATTERN =
  '^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$'
/** For the description: that a month has the day, the route checks. */
export const DAY_PATTERN = '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$'
export const MONTH_PATTERN = '^[0-9]{4}-(0[1-9]|1[0-2])$'

/**
 * A keyword whose rules are only described: the route enforces them itself, in the order of its contract. The description
 * shows them as ordinary rules.
 */
export const DECLARED_ONLY = 'x-declared'

/** The phrase after a field's name: `must be at most 500`. `params` are those of ajv's error. */
export function phraseOf(keyword: string, params: Record<string, unknown>): string {
  return PHRASES[keyword]?.(params) ?? 'is not valid'
}

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
  format: ({ format }) => (format === 'uuid' ? A_UUID : `must be a valid ${format}`),
  pattern: ({ pattern }) => PATTERN_PHRASES.get(pattern as string) ?? `must match ${pattern}`,
}

const A_UUID = 'must be a UUID'
const PATTERN_PHRASES = new Map([
  [UUID, A_UUID],
  [NO_CONTROL_CHARACTERS, 'must not contain control characters'],
])

const article = (noun: string) => (/^[aeio]/.test(noun) ? `an ${noun}` : noun === 'null' ? noun : `a ${noun}`)
