// The sums of a finance report over its merchant accounts: by currency, in the reporting currency and in US dollars, with what has no rate.
import { JsonNumber, numberText, readJson } from '../../../lib/json/read.ts'
import { readDecimal } from '../../../lib/money.ts'
import type { Row } from '../../../lib/pg/row-bytes.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { financeTotal } from './shapes.ts'

const MONEY = ['gross', 'refunded', 'charged_back', 'corrected', 'net'] as const

const sumOf = (name: string) => Type.Number({ description: `The sum of \`${name}\`.`, examples: [1240.5] })
const amounts = byName(MONEY, sumOf)

const without = {
  without_usd: Type.Integer({ description: 'How many movements have no value in US dollars.' }),
  net_without_usd: Type.Number({ description: 'Their sum in this currency.' }),
  without_rate: Type.Integer({ description: 'How many movements have no value in the reporting currency.' }),
  net_without_rate: Type.Number({ description: 'Their sum in this currency.' }),
}
const WITHOUT = Object.keys(without) as (keyof typeof without)[]

export const financeSums = {
  currencies: Type.Array(
    Type.Named('FinanceCurrency', {
      currency_code: Type.String({ description: 'ISO 4217 code.', examples: ['EUR'] }),
      payments: Type.Integer({ description: 'How many payments succeeded.' }),
      ...amounts,
      ...without,
    }),
    { description: 'All accounts and months together, by currency.' },
  ),
  fees: Type.Array(
    Type.Named('FinanceFees', {
      fee: Type.Number({ description: 'Sum in major units, negative.' }),
      fee_currency: Type.String({ description: 'ISO 4217 code.' }),
    }),
    { description: 'All fees, by their currency.' },
  ),
  usd: Type.Named('FinanceDollars', amounts, {
    description: 'Everything in US dollars, without the amounts of `currencies` that have no rate.',
  }),
  reporting: Type.Named('FinanceReporting', amounts, {
    description: 'Everything in `reporting_currency`, without the amounts of `currencies` that have no rate.',
  }),
}

/** The digits behind the point that sums keep: more than amounts and their values have. */
const SCALE = 20
const UNIT = 10n ** BigInt(SCALE)

class Sum {
  #total = 0n

  add(text: string): void {
    const { digits, scale } = readDecimal(text)!
    this.#total += digits * 10n ** BigInt(SCALE - scale)
  }

  toJson(): JsonNumber {
    const size = this.#total < 0n ? -this.#total : this.#total
    const fraction = String(size % UNIT)
      .padStart(SCALE, '0')
      .replace(/0+$/, '')
    return new JsonNumber(`${this.#total < 0n ? '-' : ''}${size / UNIT}${fraction && `.${fraction}`}`)
  }
}

/** The exact sum of decimal numbers, each a text without an exponent. */
export function sumOfTexts(texts: readonly string[]): string {
  const sum = new Sum()
  for (const text of texts) sum.add(text)
  return sum.toJson().text
}

/** Named sums that begin with 0. */
class Sums extends Map<string, Sum> {
  add(name: string, text: string): void {
    const sum = this.get(name) ?? new Sum()
    this.set(name, sum)
    sum.add(text)
  }

  of(name: string): JsonNumber {
    return (this.get(name) ?? new Sum()).toJson()
  }
}

/** The fields of `financeSums`, from rows of `financeTotal`. */
export function sumsOf(rows: readonly Row[]) {
  const names = Object.keys(financeTotal.schema.properties as object)
  const currencies = new Map<string, Sums>()
  const fees = new Sums()
  const dollars = new Sums()
  const reporting = new Sums()
  for (const row of rows) {
    const texts = row.texts()
    const value = (name: string) => texts[names.indexOf(name)]!
    const currency = value('currency_code')
    const sums = currencies.get(currency) ?? new Sums()
    currencies.set(currency, sums)
    for (const name of [...MONEY, 'payments', ...WITHOUT]) sums.add(name, value(name))
    for (const name of MONEY) {
      dollars.add(name, value(`${name}_usd`))
      reporting.add(name, value(`${name}_reported`))
    }
    for (const { fee, fee_currency } of feesIn(value('fees'))) fees.add(fee_currency, fee)
  }
  const sorted = <T>(map: Map<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    currencies: sorted(currencies).map(([currency_code, sums]) => ({
      currency_code,
      payments: sums.of('payments'),
      ...byName(MONEY, (name) => sums.of(name)),
      ...byName(WITHOUT, (name) => sums.of(name)),
    })),
    fees: sorted(fees).map(([fee_currency, sum]) => ({ fee: sum.toJson(), fee_currency })),
    usd: byName(MONEY, (name) => dollars.of(name)),
    reporting: byName(MONEY, (name) => reporting.of(name)),
  }
}

/** What has no rate, and so is in no sum of the reporting currency, by its own currency. */
export const withoutRate = ({ currencies }: Pick<ReturnType<typeof sumsOf>, 'currencies'>) =>
  currencies.flatMap(({ without_rate, net_without_rate, currency_code }) =>
    without_rate.text === '0' ? [] : [{ amount: net_without_rate.text, currency: currency_code }],
  )

function byName<N extends string, T>(names: readonly N[], make: (name: N) => T): Record<N, T> {
  return Object.fromEntries(names.map((name) => [name, make(name)])) as Record<N, T>
}

/** The fees of a total, as its column has them. */
export function feesIn(json: string): { fee: string; fee_currency: string }[] {
  const fees = readJson(json, { exact: true }) as { fee: number | JsonNumber; fee_currency: string }[]
  return fees.map(({ fee, fee_currency }) => ({ fee: numberText(fee), fee_currency }))
}
