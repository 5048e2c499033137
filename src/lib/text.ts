// Unicode text functions that do not depend on the machine or the locale.
import { isUtf8 } from 'node:buffer'
import { hideSecrets } from './hide-secrets.ts'

/**
 * Simple case folding (the statuses C and S of Unicode's CaseFolding.txt): two texts differ in case only if these are
 * equal. Every letter folds to one letter: `ẞ` becomes `ß`, not `ss`, and `ς` becomes `σ`; the dotless `ı` is no `i`. New
 * letters of a later Unicode may fold once Node knows them, so folded text that was stored is as old as the Node that wrote it.
 */
export function fold(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
  if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase()
  return text.replace(/[^a-z]/gu, foldLetter)
}

// Letters that differ in nothing but case from another one, and that JavaScript's small and capital letters keep apart.
const TWINS = new Map([
  ['\u1fd3', '\u0390'],
  ['\u1fe3', '\u03b0'],
  ['ﬅ', 'ﬆ'],
])
// Unicode folds Cherokee to capitals, all other scripts to small letters.
const SMALL_CHEROKEE = /^[\u13f8-\u13fd\uab70-\uabbf]$/

function foldLetter(letter: string): string {
  if (letter === 'ı') return letter
  const small = letter.toLowerCase()
  // Letters that share a capital become the same letter.
  const folded = small.toUpperCase().toLowerCase()
  if (SMALL_CHEROKEE.test(folded)) return folded.toUpperCase()
  return [folded, TWINS.get(letter), small].find((one) => one !== undefined && countCharacters(one) === 1) ?? letter
}

/**
 * The e-mail address of a query, folded as it is stored. A `+` that was not encoded arrives as a space, which no address has
 * outside of quotes.
 */
export const foldQueriedEmail = (text: string) => fold(text.replaceAll(' ', '+'))

/** At least one character, all of them visible ASCII: no space, no control character. */
export function isVisibleAscii(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

/** Whether the text may be the id of a record: 1 to 64 visible ASCII characters. */
export function isId(text: string): boolean {
  return text.length <= 64 && isVisibleAscii(text)
}

/** The number of Unicode characters (code points) of a well-formed text, as PostgreSQL's `char_length` counts. */
export function countCharacters(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length; at++) {
    // The second half of a pair.
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) count--
  }
  return count
}

/** Whether the text has at most so many bytes in UTF-8. */
export function fitsBytes(text: string, maxBytes: number): boolean {
  // A unit of UTF-16 has at most three bytes in UTF-8.
  return text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes
}

/** The beginning of a text, whole characters and `…`, of at most so many bytes in UTF-8. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (fitsBytes(text, maxBytes)) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes - Buffer.byteLength('…')))
  return `${text.slice(0, read)}…`
}

/** A number of bytes for people: `256 bytes`, `64 KiB`. */
export const bytesText = (bytes: number) => (bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`)

/** Whether the text contains a control character: U+0000 to U+001F and U+007F to U+009F. */
export function hasControlCharacters(text: string): boolean {
  return /\p{Cc}/u.test(text)
}

/** Whether the text may be a name: 1 to `max` characters, not all of them blank, and no control characters. */
export function isName(text: string, max: number): boolean {
  return text.trim() !== '' && countCharacters(text) <= max && !hasControlCharacters(text)
}

/**
 * The text for a terminal: characters that would control it, or change the direction of what follows, as `\u001b`. People may
 * have typed them as their e-mail address. Line feeds and tabs stay.
 */
export function printable(text: string): string {
  return text.replace(CONTROLS, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

// All of Cc except for the line feed and the tab, separators of lines and paragraphs, and Unicode's explicit directional
// formatting.
const CONTROLS = /(?![\n\t])\p{Cc}|[\u2028-\u202e\u2066-\u2069]/gu

/**
 * At most `max` characters of the text, ending with `…` if truncated: for quoting input. Keys are reduced to their prefix first,
 * because a truncated one may be too short to be found later.
 */
export function shorten(given: string, max: number): string {
  const text = hideSecrets(given)
  if (text.length <= max) return text
  // A character has at most two units, so only the beginning of a long text is split.
  const characters = [...text.slice(0, 2 * (max + 1))]
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`
}

/** `1 key`, `2 keys`. */
export const count = (n: number, noun: string, nouns = `${noun}s`) => `${n} ${n === 1 ? noun : nouns}`

/** The text of a file without a byte order mark; undefined if it is not UTF-8. UTF-16 without a mark has bytes of 0. */
export function utf8TextOf(bytes: Buffer): string | undefined {
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString('utf8').replace(/^\ufeff/, '') : undefined
}
