// Reads files of exchange rates: the European Central Bank's CSV and XML as it publishes them, also in its ZIP, and a plain CSV.
import { FIRST_DAY, isDay } from '../../../lib/days.ts'
import { Refusal } from '../../../lib/errors.ts'
import { shorten } from '../../../lib/text.ts'
import { isZip, unzip } from '../../../lib/unzip.ts'

export interface Rate {
  /** `2026-01-31` */
  day: string
  currencyCode: string
  /** Units of the currency for one euro, as text. */
  perEuro: string
}

// Above 0, with more digits than any rate has and fewer than the database can keep.
const RATE = /^(?=.*[1-9])\d{1,15}(\.\d{1,30})?$/
const PLAIN_HEADER = 'date,currency,per_euro'
const MONTHS = 'January February March April May June July August September October November December'.split(' ')

// The ECB's whole history has 7 MB.
export const MAX_BYTES = 32 * 1024 * 1024

/**
 * The rates of a file, whose format is recognized by its first characters; a ZIP archive is that of the file in it. Throws a `Refusal` that
 * names the line.
 */
export function readRates(bytes: Buffer, name: string): Rate[] {
  const text = (isZip(bytes) ? unzip(bytes, name, MAX_BYTES) : bytes).toString('utf8')
  const file = text.replace(/^\ufeff/, '')
  if (file.trimStart().startsWith('<')) return readXml(file, name)
  const lines = file.split(/\r?\n/).map((line) => line.split(',').map((cell) => cell.trim()))
  const header = lines[0]!.join(',').toLowerCase()
  if (header === PLAIN_HEADER) return readPlain(lines, name)
  if (header.startsWith('date,')) return readTable(lines, name)
  throw new Refusal(
    `${name} is no file of exchange rates: it must be the ECB's CSV or XML, also as a ZIP, or a CSV that begins with "${PLAIN_HEADER}".`,
  )
}

/** One line a day, one column a currency; `N/A` where there was none. */
function readTable(lines: string[][], name: string): Rate[] {
  const codes = lines[0]!
  return lines.flatMap((cells, n) => {
    if (n === 0 || isBlank(cells)) return []
    const place = `${name}:${n + 1}`
    const day = readDay(cells[0]!, place)
    return cells.flatMap((cell, column) => {
      if (column === 0 || cell === '' || cell === 'N/A') return []
      return [readRate(day, codes[column] ?? '', cell, place)]
    })
  })
}

function readPlain(lines: string[][], name: string): Rate[] {
  return lines.flatMap((cells, n) => {
    if (n === 0 || isBlank(cells)) return []
    const place = `${name}:${n + 1}`
    if (cells.length !== 3) throw new Refusal(`${place}: three values are required, as in "${PLAIN_HEADER}".`)
    return [readRate(readDay(cells[0]!, place), cells[1]!, cells[2]!, place)]
  })
}

/** `<Cube time="2026-01-30"><Cube currency="USD" rate="1.0919"/>…`, in single or double quotes. */
function readXml(file: string, name: string): Rate[] {
  const rates: Rate[] = []
  let day: string | undefined
  for (const [tag, attributes] of file.matchAll(/<Cube\b([^>]*)>/g)) {
    const values = Object.fromEntries(
      [...attributes!.matchAll(/(\w+)\s*=\s*["']([^"']*)["']/g)].map(([, k, v]) => [k, v]),
    )
    if (values.time !== undefined) day = readDay(values.time, name)
    if (values.currency === undefined) continue
    if (day === undefined) throw new Refusal(`${name}: the rate ${tag} comes before any date.`)
    rates.push(readRate(day, values.currency, values.rate ?? '', name))
  }
  if (rates.length === 0) throw new Refusal(`${name} is XML without exchange rates of the ECB.`)
  return rates
}

function readRate(day: string, currencyCode: string, perEuro: string, place: string): Rate {
  if (!/^[A-Z]{3}$/.test(currencyCode)) throw new Refusal(`${place}: "${currencyCode}" is not a currency code.`)
  if (!RATE.test(perEuro)) throw new Refusal(`${place}: "${shorten(perEuro, 40)}" is not a rate.`)
  // By another rate all amounts in euros would be wrong: such a file may be by way of another currency.
  if (currencyCode === 'EUR' && Number(perEuro) !== 1)
    throw new Refusal(
      `${place}: the rate of EUR must be 1, got "${perEuro}": rates are units of a currency for one euro.`,
    )
  return { day, currencyCode, perEuro }
}

/** `2026-01-30`, or `30 January 2026` as in the ECB's file of one day. */
function readDay(text: string, place: string): string {
  const [, dayOfMonth, month] = /^(\d{1,2}) ([A-Z][a-z]+) (\d{4})$/.exec(text) ?? []
  const day = dayOfMonth
    ? `${text.slice(-4)}-${String(MONTHS.indexOf(month!) + 1).padStart(2, '0')}-${dayOfMonth.padStart(2, '0')}`
    : text
  if (isDay(day) && day >= FIRST_DAY) return day
  throw new Refusal(`${place}: "${text}" is not a date.`)
}

const isBlank = (cells: string[]) => cells.every((cell) => cell === '')
