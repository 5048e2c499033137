// HTML from tagged templates, which escape every value, and isolate text whose direction could change that of the text around it.

/** HTML that is inserted into other HTML without escaping. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

export type Piece = Html | string | number | null | undefined | false | readonly Piece[]

/** `html`<b>${name}</b>`` escapes `name`. `Html` is inserted as it is, lists are joined; null, undefined and false add nothing. */
export function html(strings: TemplateStringsArray, ...pieces: Piece[]): Html {
  let text = strings[0]!
  for (const [n, piece] of pieces.entries()) text += write(piece, text) + strings[n + 1]!
  return new Html(text)
}

/** `before` is the HTML before the piece. */
function write(piece: Piece, before: string): string {
  if (piece === null || piece === undefined || piece === false) return ''
  if (piece instanceof Html) return piece.text
  if (typeof piece === 'object') return piece.map((one) => write(one, before)).join('')
  const text = String(piece)
  return MAY_TURN.test(text) && !IN_ATTRIBUTE.test(before) ? isolate(text, before) : escapeHtml(text)
}

// Formatting characters that change the direction of what follows.
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g
// These, other marks of direction, and the letters of scripts that are written from right to left.
const MAY_TURN =
  /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
const IN_ATTRIBUTE = /="[^"<>]*$/
const IN_PLAIN_TEXT = /<(?:title|option)\b[^<>]*>[^<]*$/

// It is read from left to right in every script: in the other direction its domain would come first.
const ADDRESS = /^[^\s@]+@[^\s@]+$/

/** Without formatting characters, which could end the isolation. Elements with plain text cannot contain `<bdi>`. */
function isolate(text: string, before: string): string {
  const escaped = escapeHtml(text.replace(DIRECTIONS, ''))
  const isAddress = ADDRESS.test(text)
  if (IN_PLAIN_TEXT.test(before)) return `${isAddress ? '\u2066' : '\u2068'}${escaped}\u2069`
  return `<bdi${isAddress ? ' dir="ltr"' : ''}>${escaped}</bdi>`
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]!)
}

/** HTML as plain text, for CSV: a time in full, and nothing for a value that does not exist. */
export function textOf(piece: Piece): string {
  if (typeof piece === 'string') return piece.replace(/\s+/g, ' ').trim()
  const plain = write(piece, '')
    .replace(/<\/?bdi[^>]*>/g, '')
    .replace(/<time datetime="([^"]*)"[^>]*>[^<]*/g, '$1')
    .replace(/<span class="none"[^>]*>[^<]*/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return Object.entries(ESCAPES).reduceRight((text, [character, entity]) => text.replaceAll(entity, character), plain)
}
