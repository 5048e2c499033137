// How values are shown: numbers grouped, money with its currency, times in UTC, ids that can be copied.
import { minorUnits } from '../lib/money.ts'
import { type Html, html, type Piece } from './html.ts'

const NONE = html`<span class="none" aria-label="none">–</span>`

export function number(value: number | null | undefined): Piece {
  return value === null || value === undefined ? NONE : value.toLocaleString('en-US', { maximumFractionDigits: 2 })
}

/** `1 refund`, `2 refunds`. */
export const plural = (count: number, one: string, many = `${one}s`) =>
  html`${number(count)} ${count === 1 ? one : many}`

/** An amount in major units. */
export function money(value: number | string | null | undefined, currency = 'USD'): Piece {
  if (value === null || value === undefined) return NONE
  const digits = minorUnits(currency) ?? 2
  const text = Number(value).toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return currency === 'USD' ? `${text.startsWith('-') ? '−' : ''}$${text.replace('-', '')}` : `${text} ${currency}`
}

/** An amount in minor units. */
export function minorMoney(value: number | string | null, currency: string): Piece {
  return value === null ? NONE : money(Number(value) / 10 ** (minorUnits(currency) ?? 2), currency)
}

export function percent(value: number | null | undefined): Piece {
  return value === null || value === undefined ? NONE : `${(value * 100).toFixed(1)}%`
}

/** How a value changed, as a share of what it was; `bad` when growing is bad. */
export function change(value: number | null | undefined, before: number | null | undefined, bad = false): Piece {
  if (value === null || value === undefined || !before) return html`<span class="change flat">no comparison</span>`
  const share = (value - before) / Math.abs(before)
  if (Math.abs(share) < 0.0005) return html`<span class="change flat">unchanged</span>`
  const isGood = share > 0 !== bad
  const percents = Math.abs(share) * 100
  const digits = percents < 100 ? 1 : 0
  const text = `${share > 0 ? '+' : '−'}${percents.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}%`
  return html`<span class="change ${isGood ? 'good' : 'poor'}">${text}</span>`
}

/** A date-time as the API has it; the script adds the local time to the title. */
export function time(instant: string | null | undefined): Piece {
  if (!instant) return NONE
  return html`<time datetime="${instant}" title="${instant}">${instant.slice(0, 10)} ${instant.slice(11, 16)}</time>`
}

/** The same to the second, for what happens within one. */
export function moment(instant: string): Piece {
  return html`<time datetime="${instant}" title="${instant}">${instant.slice(0, 10)} ${instant.slice(11, 19)}</time>`
}

const UNITS: [seconds: number, name: string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/** A length of time in its largest fitting unit. */
export function duration(seconds: number | null | undefined): Piece {
  if (seconds === null || seconds === undefined) return NONE
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, 's']
  return `${(seconds / size).toFixed(seconds < 10 && size === 1 ? 1 : 0)} ${name}`
}

export const milliseconds = (value: number | null | undefined): Piece =>
  value === null || value === undefined ? NONE : value < 1000 ? `${Math.round(value)} ms` : duration(value / 1000)

/** An id with a button that copies it; without scripts it is plain text. */
export function id(text: string | null | undefined, href?: string): Piece {
  if (!text) return NONE
  const shown = href ? html`<a href="${href}">${text}</a>` : html`<span>${text}</span>`
  return html`<span class="id">${shown}<button type="button" class="copy" data-copy="${text}" aria-label="Copy ${text}" hidden></button></span>`
}

const TONES: Record<string, string> = {
  active: 'good',
  succeeded: 'good',
  enabled: 'good',
  published: 'good',
  ok: 'good',
  done: 'good',
  allowed: 'good',
  live: 'good',
  running: 'calm',
  following: 'calm',
  waiting: 'calm',
  revoked: 'warn',
  trialing: 'calm',
  processing: 'calm',
  pending: 'calm',
  refunded: 'calm',
  paused: 'warn',
  unpaid: 'warn',
  cancelled: 'warn',
  warning: 'warn',
  failed: 'poor',
  expired: 'flat',
  disabled: 'poor',
  erased: 'flat',
}

export function status(word: string | null | undefined): Piece {
  return word ? html`<span class="badge ${TONES[word] ?? 'flat'}">${word}</span>` : NONE
}

/** A bar of a share from 0 to 1; style attributes are not allowed by the policy, attributes of SVG are. */
export function bar(share: number, tone = ''): Html {
  const width = Math.max(0, Math.min(100, share * 100)).toFixed(2)
  return html`<svg class="bar ${tone}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="8"/><rect class="fill" width="${width}" height="8"/></svg>`
}

/** An address, shortened where it is long. */
export const url = (text: string) => html`<span class="url" title="${text}">${text}</span>`

/** Words of a snake_case name. */
export const words = (name: string) => name.replaceAll('_', ' ').replace(/^./, (letter) => letter.toUpperCase())
