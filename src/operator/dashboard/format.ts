// Formats values for pages: numbers, money with its currency, times in UTC, ids with a button that copies them.
import { DAY_S, dateOf } from '../../lib/days.ts'
import { minorUnits } from '../../lib/money.ts'
import { type Html, html, type Piece } from './html.ts'

// Created once: creating one for each number would take most of a page's time. A negative value that is written as 0 has no sign.
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })
const byDecimals = (more: Intl.NumberFormatOptions = {}) =>
  Array.from({ length: 5 }, (_, digits) => {
    const decimals = { minimumFractionDigits: digits, maximumFractionDigits: digits }
    return new Intl.NumberFormat('en-US', { signDisplay: 'negative', ...decimals, ...more })
  })
const FIXED = byDecimals()
const PLAIN = byDecimals({ useGrouping: false, maximumFractionDigits: 4 })

const NONE = html`<span class="none" aria-label="none">–</span>`

export function number(value: number | null | undefined): Piece {
  return value === null || value === undefined ? NONE : WHOLE.format(value)
}

// As many decimals as a unit of credits may have.
const CREDITS = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 })

/** An amount of credits, with all its decimals. */
export function creditAmount(value: number | null | undefined): Piece {
  return value === null || value === undefined ? NONE : CREDITS.format(value)
}

/** `1 refund`, `2 refunds`. */
export const plural = (count: number, one: string, many = `${one}s`) =>
  html`${number(count)} ${count === 1 ? one : many}`

/** An amount in major units with its currency: `$12.00`, `CA$12.00`, or `UAH 12.00` for one without a sign. */
export function money(value: number | string | null | undefined, currency: string): Piece {
  if (value === null || value === undefined) return NONE
  const [digits, sign] = [digitsOf(value, currency), signOf(currency)]
  return digits.startsWith('−') ? `−${sign}${digits.slice(1)}` : `${sign}${digits}`
}

const signs = new Map<string, string>()

/** The sign in front of an amount. `¥` alone is the yen, `$` alone the US dollar. */
function signOf(currency: string): string {
  let sign = signs.get(currency)
  if (sign === undefined) {
    const known = /^[A-Z]{3}$/.test(currency)
      ? new Intl.NumberFormat('en-US', { style: 'currency', currency })
          .formatToParts(0)
          .find(({ type }) => type === 'currency')!.value
      : currency
    // A code and the number are one word: they must not be on two lines.
    // Signs that every font has; the others are in few.
    sign = /^[A-Z]{0,3}[$€£¥]$/.test(known) ? known : `${currency}\u00a0`
    signs.set(currency, sign)
  }
  return sign
}

/** An amount as a number for a sheet: with the decimals of its currency, without signs and groups. */
export const plainMoney = (value: number | string, currency: string): string =>
  PLAIN[minorUnits(currency) ?? 2]!.format(value as Intl.StringNumericLiteral)

function digitsOf(value: number | string, currency: string): string {
  return FIXED[minorUnits(currency) ?? 2]!.format(value as Intl.StringNumericLiteral).replace('-', '−')
}

/** An amount in minor units. */
export function minorMoney(value: number | string | null, currency: string): Piece {
  // As decimal text: a division would lose digits of large amounts.
  return value === null ? NONE : money(`${value}e-${minorUnits(currency) ?? 2}`, currency)
}

export function percent(value: number | null | undefined): Piece {
  if (value === null || value === undefined) return NONE
  return `${FIXED[1]!.format((value * 100).toFixed(1) as Intl.StringNumericLiteral)}%`
}

type Value = number | null | undefined

interface Changing {
  /** Whether growth is bad. */
  bad?: boolean
  /** Whether the value is a share, whose change is the difference in percentage points. */
  isShare?: boolean
  /** Shown if there is no value to compare with. */
  none?: string
}

/** The change of a value, in percent of the earlier value; for shares in percentage points. */
export function change(value: Value, before: Value, changing: Changing = {}): Piece {
  const { bad = false, isShare = false, none = 'no comparison' } = changing
  if (value === null || value === undefined || before === null || before === undefined || (!before && !isShare))
    return html`<span class="change flat">${none}</span>`
  const percents = ((value - before) / (isShare ? 1 : Math.abs(before))) * 100
  if (Math.abs(percents) < 0.05) return html`<span class="change flat">unchanged</span>`
  const digits = Math.abs(percents) < 100 ? 1 : 0
  const text = `${percents > 0 ? '+' : '−'}${FIXED[digits]!.format(Math.abs(percents))}`
  const tone = percents > 0 === bad ? 'poor' : 'good'
  return html`<span class="change ${tone}">${text}${isShare ? ' points' : '%'}</span>`
}

/** A date-time to the minute. The title has it in full, and the local time is added by the script. */
export function time(instant: string | null | undefined): Piece {
  if (!instant) return NONE
  return html`<time datetime="${instant}" title="${instant}">${dateOf(instant)}, ${instant.slice(11, 16)}</time>`
}

const dayFormats = new Map<string, Intl.DateTimeFormat>()

/** The day of an instant in a time zone, where the time of day does not matter. */
export function day(instant: string | null | undefined, timeZone: string): Piece {
  if (!instant) return NONE
  const format = dayFormats.get(timeZone) ?? new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' })
  dayFormats.set(timeZone, format)
  return html`<time datetime="${instant}" title="${instant}">${dateOf(format.format(new Date(instant)))}</time>`
}

/** A date-time to the second, for steps that follow each other quickly. */
export function moment(instant: string): Piece {
  return html`<time datetime="${instant}" title="${instant}">${dateOf(instant)}, ${instant.slice(11, 19)}</time>`
}

const UNITS: [seconds: number, name: string][] = [
  [DAY_S, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/** A duration in the largest unit that fits, with at least two digits. */
export function duration(seconds: number | null | undefined): Piece {
  if (seconds === null || seconds === undefined) return NONE
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, 's']
  if (seconds < 0.05) return '0 s'
  const count = seconds / size
  return `${count.toFixed(count < 10 ? 1 : 0)} ${name}`
}

export const milliseconds = (value: number | null | undefined): Piece =>
  value === null || value === undefined ? NONE : value < 1000 ? `${Math.round(value)} ms` : duration(value / 1000)

/** An id with a button that copies it; without scripts only the text. */
export function id(text: string | null | undefined, href?: string): Piece {
  if (!text) return NONE
  const shown = href ? html`<a href="${href}">${text}</a>` : html`<span>${text}</span>`
  return html`<span class="id">${shown}<button type="button" class="copy" data-copy="${text}" aria-label="Copy ${text}" hidden></button></span>`
}

const TONES = {
  good: 'active, succeeded, sent, enabled, published, ok, done, allowed, live, on, won',
  calm: 'open, running, following, waiting, trialing, processing, pending, refunded, partially refunded',
  warn: 'off, revoked, paused, unpaid, cancelled, warning, behind',
  poor: 'charged back, failed, failing, disabled',
}
const TONE_OF = new Map(Object.entries(TONES).flatMap(([tone, words]) => words.split(', ').map((word) => [word, tone])))

export function status(word: string | null | undefined): Piece {
  return word ? html`<span class="badge ${TONE_OF.get(word) ?? 'flat'}">${word}</span>` : NONE
}

/** A bar for a share from 0 to 1. It is an SVG because the Content-Security-Policy forbids style attributes. */
export function bar(share: number): Html {
  const width = Math.max(0, Math.min(100, share * 100)).toFixed(2)
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="8"/><rect class="fill" width="${width}" height="8"/></svg>`
}

/** Marks test data. */
export const sandboxBadge = (one: { sandbox: boolean }) => one.sandbox && html` <span class="badge flat">sandbox</span>`

/** Text on one line, truncated if it is too long; the title has all of it. */
export const cut = (text: string) => html`<span class="cut" title="${text}">${text}</span>`

const COUNTRIES = new Intl.DisplayNames('en', { type: 'region', fallback: 'code' })
const LANGUAGES = new Intl.DisplayNames('en', { type: 'language', fallback: 'code' })

/** The name of a country, or the text itself if it is not a country code. */
export const country = (code: string) => (/^[A-Z]{2}$/.test(code) ? COUNTRIES.of(code)! : code)

let codes: Map<string, string> | undefined

/** The code of a country that was typed as its code or its English name; another text as it is, because records may have it so. */
export function countryCode(typed: string): string {
  const text = typed.trim()
  codes ??= new Map(regions().map((code) => [country(code).toLowerCase(), code]))
  return codes.get(text.toLowerCase()) ?? (text.length === 2 ? text.toUpperCase() : text)
}

/** The codes of countries, without those of former ones, which have the names of later ones. */
function regions(): string[] {
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
  const all = letters.flatMap((first) => letters.map((second) => first + second))
  return all.filter((code) => new Intl.Locale(`und-${code}`).region === code)
}

/** The name of a language, or the text itself if it is not a language code. */
export const language = (code: string) => (/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(code) ? LANGUAGES.of(code)! : code)

const ORDINAL = new Intl.PluralRules('en', { type: 'ordinal' })
const ENDINGS: Record<string, string> = { one: 'st', two: 'nd', few: 'rd' }

/** `2nd`, `3rd`, `4th`. */
export const ordinal = (count: number) => `${count}${ENDINGS[ORDINAL.select(count)] ?? 'th'}`

/** A snake_case name as words: `won_dispute` becomes `Won dispute`. */
export const words = (name: string) => name.replaceAll('_', ' ').replace(/^./, (letter) => letter.toUpperCase())

/** The labels of choices, by their names: `country` has `Country`. */
export const labelsOf = <const N extends string>(...names: N[]) =>
  Object.fromEntries(names.map((name) => [name, words(name)])) as Record<N, string>

/** The code of a reason as words; an empty one is that of records without a reason. */
export const nameOfReason = (code: string) => (code === '' ? 'No reason given' : words(code))
