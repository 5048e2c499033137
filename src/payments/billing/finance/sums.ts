// The sums of a finance report over its merchant accounts: by currency, and in US dollars with what has no rate.
import { type JsonNumber, numberText, readJson } from '../../../lib/json/read.ts'
import { readDecimal } from '../../../lib/money.ts'
import type { Row } from '../../../lib/pg/row-bytes.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { financeTotal } from './report.ts'

const MONEY = ['gross', 'refunded', 'charged_back', 'corrected', 'net'] as const
type Money = (typeof MONEY)[number]

const amounts = Object.fromEntries(
  MONEY.map((name) => [name, Type.Number({ description: `The sum of \`${name}\`.`, examples: [1240.5] })]),
)

const without = {
  without_usd: Type.Integer({ description: 'How many movements have no value in US dollars.' }),
  net_without_usd: Type.Number({ description: 'Their sum in this currency.' }),
}

export const financeSums = {
  currencies: Type.Array(
    Type.Object(
      {
        currency_code: Type.String({ description: 'ISO 4217 code.', examples: ['EUR'] }),
        payments: Type.Integer({ description: 'How many payments succeeded.' }),
        ...amounts,
        ...without,
      },
      { title: 'FinanceCurrency', additionalProperties: false },
    ),
    { description: 'All accounts and months together, by currency.' },
  ),
  fees: Type.Array(
    Type.Object(
      {
        fee: Type.Number({ description: 'Sum in major units, negative.' }),
        fee_currency: Type.String({ description: 'ISO 4217 code.' }),
      },
      { title: 'FinanceFees', additionalProperties: false },
    ),
    { description: 'All fees, by their currency.' },
  ),
  usd: Type.Object(amounts, {
    title: 'FinanceDollars',
    additionalProperties: false,
    description: 'Everything in US dollars, without the amounts of `currencies` that have no rate.',
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

  toString(): string {
    const size = this.#total < 0n ? -this.#total : this.#total
    const fraction = String(size % UNIT)
      .padStart(SCALE, '0')
      .replace(/0+$/, '')
    return `${this.#total < 0n ? '-' : ''}${size / UNIT}${fraction && `.${fraction}`}`
  }
}

/** Named sums that begin with 0. */
class Sums {
  readonly #sums = new Map<string, Sum>()

  add(name: string, text: string): void {
    const sum = this.#sums.get(name) ?? new Sum()
    this.#sums.set(name, sum)
    sum.add(text)
  }

  of(name: string): string {
    return String(this.#sums.get(name) ?? '0')
  }
}

/** The JSON of the fields of `financeSums`, from rows of `financeTotal`; without the braces around them. */
export function writeSums(rows: readonly Row[]): string {
  const names = Object.keys(financeTotal.schema.properties as object)
  const currencies = new Map<string, Sums>()
  const fees = new Map<string, Sum>()
  const dollars = new Sums()
  for (const row of rows) {
    const texts = row.texts()
    const value = (name: string) => texts[names.indexOf(name)]!
    const currency = value('currency_code')
    const sums = currencies.get(currency) ?? new Sums()
    currencies.set(currency, sums)
    for (const name of [...MONEY, 'payments', 'without_usd', 'net_without_usd']) sums.add(name, value(name))
    for (const name of MONEY) dollars.add(name, value(`${name}_usd`))
    for (const { fee, fee_currency } of feesIn(value('fees'))) {
      const sum = fees.get(fee_currency) ?? new Sum()
      fees.set(fee_currency, sum)
      sum.add(fee)
    }
  }
  const fields = (sums: Sums, all: readonly string[]) => all.map((name) => `"${name}":${sums.of(name)}`).join(',')
  const sorted = <T>(map: Map<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
  const each = sorted(currencies).map(
    ([currency, sums]) =>
      `{"currency_code":"${currency}",${fields(sums, ['payments', ...MONEY, 'without_usd', 'net_without_usd'])}}`,
  )
  const kept = sorted(fees).map(([currency, sum]) => `{"fee":${sum},"fee_currency":"${currency}"}`)
  return `"currencies":[${each.join(',')}],"fees":[${kept.join(',')}],"usd":{${fields(dollars, MONEY satisfies readonly Money[])}}`
}

/** The fees of a total, as its column has them. */
export function feesIn(json: string): { fee: string; fee_currency: string }[] {
  const fees = readJson(json, { exact: true }) as { fee: number | JsonNumber; fee_currency: string }[]
  return fees.map(({ fee, fee_currency }) => ({ fee: numberText(fee), fee_currency }))
}
