// The text format of COPY.

const SPECIAL = /[\\\n\r\t]/
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A null of COPY. */
export const COPY_NULL = '\\N'

/** A row as COPY reads it, without its line feed. */
export function copyRow(values: readonly (string | number | boolean | null)[]): string {
  return values
    .map((value) => (value === null ? COPY_NULL : typeof value === 'string' ? copyText(value) : value))
    .join('\t')
}

/** A text as COPY reads it. */
export function copyText(text: string): string {
  return SPECIAL.test(text) ? text.replace(/[\\\n\r\t]/g, (character) => ESCAPES[character]!) : text
}
