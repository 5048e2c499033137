// Keeps card numbers out: finds them in objects that callers send, and masks them in the logs.
import { isJsonObject, JsonNumber, type JsonValue, numberText } from './json/read.ts'
import { shorten } from './text.ts'

// Prefixes and lengths as the networks publish them.
const NETWORKS = anyOf(
  /^4(?:\d{12}|\d{15}|\d{18})$/, // Visa
  /^(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}$/, // Mastercard
  /^3[47]\d{13}$/, // American Express
  /^(?=\d{14,19}$)3(?:0[0-5]|095|6|8|9)/, // Diners Club
  /^(?=\d{16,19}$)35(?:2[89]|[3-8])/, // JCB
  /^(?=\d{16,19}$)6(?:011|4[4-9]|5)/, // Discover
  /^(?=\d{16,19}$)(?:62|81)/, // UnionPay
  /^(?=\d{12,19}$)(?:5018|5020|5038|5893|6304|6390|67)/, // Maestro
  /^(?=\d{16,19}$)220[0-4]/, // Mir
  /^(?=\d{16,19}$)506[01]/, // Verve
  /^(?=\d{16}$)(?:60|82|508)/, // RuPay, Hipercard
  /^(?=\d{16}$)(?:5067|509|6277|6362|6363)/, // Elo
  /^(?=\d{16}$)9792/, // Troy
)

const CARD_WORDS = /^(?:card|pan|cc|number|account|creditcard|debitcard|cardnumber|ccnumber)s?$/i
const ID_WORDS = /^ids?$/i
const WORD = /[A-Z]{2,}s(?![a-z])|[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g
const MAX_PATH = 200

/**
 * The path (`card.numbers[0]`) of the first value that is shaped like a card number under a key that names a card,
 * by one of its words (`cardNumber`, `card-number`, `CC_2`); read the value with `exact`.
 *
 * A key applies to everything below it, as `card` does in `{"card": {"digits": …}}`, up to a key that names an id:
 * one long number in ten passes the check digit, so ids are not examined (`account_id`, `{"account": {"id": …}}`).
 * Within text the number must stand by itself: not `acct_4242…`, nor a phone number with its `+`. Its digits may be those of any
 * script, and dashes, spaces, dots or slashes of any kind may separate its groups: see `asTyped`.
 */
export function findCardNumber(value: JsonValue): string | undefined {
  const path = search(value, '', false)
  return path === undefined ? undefined : shorten(maskDigits(path), MAX_PATH)
}

/**
 * Replaces every card number in a text by asterisks, wherever it is; as a bare number in JSON it becomes `null`, so
 * that a line of JSON stays one. Other numbers pass if the rule can recognize them: UUIDs, anything of under 12 or over 19
 * digits in one piece, what begins or ends unlike a card (times, ULIDs, counters); an id of 13 to 19 digits with a known
 * prefix is masked once in ten.
 */
export function maskDigits(text: string): string {
  const masked = maskRuns(text)
  if (masked === text) return text
  // Few texts get here, so only now UUIDs are recognized, which may consist of digits.
  const pieces = text.split(UUID)
  return pieces.map((piece, at) => (at % 2 === 0 ? maskRuns(piece) : piece)).join('')
}

function search(value: JsonValue, path: string, namesCard: boolean): string | undefined {
  if (Array.isArray(value)) return first(value.entries(), ([at, item]) => search(item, `${path}[${at}]`, namesCard))
  if (!isJsonObject(value)) return namesCard && holdsCardNumber(scalarText(value)) ? path : undefined
  return first(Object.entries(value), ([name, item]) => {
    const inner = path === '' ? name : `${path}.${name}`
    if (namesCard && holdsCardNumber(name)) return inner
    return search(item, inner, keyNamesCard(name, namesCard))
  })
}

function keyNamesCard(name: string, enclosing: boolean): boolean {
  const words = name.match(WORD) ?? []
  if (words.some((word) => ID_WORDS.test(word))) return false
  return enclosing || words.some((word) => CARD_WORDS.test(word))
}

function scalarText(value: JsonValue): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'number' && !(value instanceof JsonNumber)) return ''
  const text = numberText(value)
  // 4242424242424242.0 and 4.242424242424242e15 are the same number.
  return Number.isSafeInteger(Number(text)) ? String(Number(text)) : text
}

function first<In, Out>(items: Iterable<In>, find: (item: In) => Out | undefined): Out | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

// Twelve digits are the fewest of any card number; single spaces or dashes may stand between them. (Written out, for
// `{11,}` makes the engine four times slower on text without any.)
const RUN = new RegExp(String.raw`\d${String.raw`[ -]?\d`.repeat(11)}(?:[ -]?\d)*`, 'g')
const UUID = /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/gi

function holdsCardNumber(text: string): boolean {
  const searched = asTyped(text.replace(UUID, 'uuid'))
  for (const { 0: run, index } of searched.matchAll(RUN)) {
    const alone = !/[\w+]/.test(searched[index - 1] ?? '') && !/\w/.test(searched[index + run.length] ?? '')
    if (alone && maskGroups(run) !== run) return true
  }
  return false
}

function maskRuns(text: string): string {
  return text.replace(RUN, (run: string, at: number) => {
    const masked = maskGroups(run)
    return masked !== run && isJsonNumber(text, at, run) ? 'null' : masked
  })
}

function isJsonNumber(text: string, at: number, run: string): boolean {
  return /^\d+$/.test(run) && /[:,[]/.test(text[at - 1] ?? '') && /[,}\]]/.test(text[at + run.length] ?? '')
}

/** Whether the text is a card number and nothing else; single spaces or dashes may separate its groups. */
export function isCardNumber(given: string): boolean {
  const text = asTyped(given).trim()
  return /^[0-9]+(?:[ -][0-9]+)*$/.test(text) && isNumberOfCard(text.replace(/[ -]/g, ''))
}

// The groups of a card with dots, slashes or underscores between them. Other digits with a dot are a decimal number.
const GROUPS = /(?<!\d|\d[./_])\d{4}([./_])(?:\d{4}\1\d{4}\1\d{1,7}|\d{6}\1\d{4,5})(?![./_]?\d)/g

/**
 * The text as one would type it: digits of other scripts, as full-width ones, in ASCII; one space or dash for spaces and dashes of every
 * kind and number; and nothing invisible.
 */
function asTyped(text: string): string {
  const ascii = /[^\x20-\x7e]/.test(text)
    ? text
        .replace(/\p{Cf}/gu, '')
        .replace(/\p{Nd}/gu, digitOf)
        .replace(/\p{Zs}/gu, ' ')
        .replace(/\p{Pd}|\u2212/gu, '-')
    : text
  return ascii
    .replace(/ {2,}/g, ' ')
    .replace(/ ?-[ -]*/g, '-')
    .replace(GROUPS, (groups, separator: string) => groups.replaceAll(separator, '-'))
}

/** Scripts have their digits in blocks from zero to nine. */
function digitOf(character: string): string {
  const code = character.codePointAt(0)!
  let zero = code
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--
  return String((code - zero) % 10)
}

/** Masks a run of digits with single spaces or dashes: as a whole, else the groups in it that make up a card number. */
function maskGroups(run: string): string {
  if (isNumberOfCard(run.replace(/[ -]/g, ''))) return stars(run)
  const parts = run.split(/([ -])/)
  if (parts.length === 1) return run
  for (let from = 0; from < parts.length; from += 2) {
    for (let to = lastPart(parts, from); to >= from; to -= 2) {
      const groups = parts.slice(from, to + 1)
      if (!isNumberOfCard(groups.filter((_, at) => at % 2 === 0).join(''))) continue
      parts.splice(from, groups.length, ...groups.map(stars))
      break
    }
  }
  return parts.join('')
}

/** How far a card number that begins here could reach: groups have at least three digits. */
function lastPart(parts: string[], from: number): number {
  let to = from
  let digits = parts[from]!.length
  while (to + 2 < parts.length && parts[to]!.length >= 3 && parts[to + 2]!.length >= 3) {
    digits += parts[to + 2]!.length
    if (digits > 19) break
    to += 2
  }
  return to
}

function isNumberOfCard(digits: string): boolean {
  return NETWORKS.test(digits) && passesLuhn(digits)
}

function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at])
    const doubled = at % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

function stars(text: string): string {
  return text.replace(/\d/g, '*')
}

function anyOf(...patterns: RegExp[]): RegExp {
  return new RegExp(patterns.map((pattern) => pattern.source).join('|'))
}
