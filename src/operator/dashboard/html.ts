// HTML from tagged templates, which escape every value.

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
  for (const [n, piece] of pieces.entries()) text += write(piece) + strings[n + 1]!
  return new Html(text)
}

function write(piece: Piece): string {
  if (piece === null || piece === undefined || piece === false) return ''
  if (piece instanceof Html) return piece.text
  if (typeof piece === 'object') return piece.map(write).join('')
  return escapeHtml(String(piece))
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]!)
}

/** HTML as plain text, for CSV: a time in full, and nothing for a value that does not exist. */
export function textOf(piece: Piece): string {
  const plain = write(piece)
    .replace(/<time datetime="([^"]*)"[^>]*>[^<]*/g, '$1')
    .replace(/<span class="none"[^>]*>[^<]*/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return Object.entries(ESCAPES).reduceRight((text, [character, entity]) => text.replaceAll(entity, character), plain)
}
