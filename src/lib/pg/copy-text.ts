// The text format of COPY.

const SPECIAL = /[\\\n\r\t]/
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A null of COPY. */
export const COPY_NULL = '\\N'

/** A text as COPY reads it. */
export function copyText(text: string): string {
  return SPECIAL.test(text) ? text.replace(/[\\\n\r\t]/g, (character) => ESCAPES[character]!) : text
}
