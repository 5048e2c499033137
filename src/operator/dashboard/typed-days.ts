// Days that people type: the fields for them are plain text, because a browser shows its own ones in the order of its language.
import { dateOf } from '../../lib/days.ts'
import { type Html, html } from './html.ts'

/** The parameters and fields of forms that are days. */
const DAYS = ['from', 'to', 'since', 'day', 'expires_at', 'created_after']
const MONTH = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' })
const MONTHS = Array.from({ length: 12 }, (_, month) => MONTH.format(Date.UTC(2026, month)).toLowerCase())

/** `26 Oct 2026` and `26 October 2026` as `2026-10-26`. Any other text stays, for the check of days to refuse it. */
function isoDay(text: string): string {
  const [, day, name, year] = /^(\d{1,2})\.? +([a-z]{3,9})\.?,? +(\d{4})$/i.exec(text.trim()) ?? []
  const month = name === undefined ? -1 : MONTHS.findIndex((one) => one.startsWith(name.toLowerCase()))
  return month < 0 ? text.trim() : `${year}-${String(month + 1).padStart(2, '0')}-${day!.padStart(2, '0')}`
}

/** Writes the days among the parameters as `2026-10-26`. */
export function withIsoDays(given: URLSearchParams): URLSearchParams {
  for (const name of DAYS) {
    const value = given.get(name)
    if (value) given.set(name, isoDay(value))
  }
  return given
}

/** A field for a day, which shows it as pages do. */
export const dayInput = (name: string, value = '', required = false): Html =>
  html`<input class="day" name="${name}" value="${/^\d{4}-\d{2}-\d{2}$/.test(value) ? dateOf(value) : value}" placeholder="26 Oct 2026" title="A day such as 26 Oct 2026 or 2026-10-26" size="12" maxlength="40" autocomplete="off" spellcheck="false"${required && html` required`}>`
