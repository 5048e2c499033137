// The reporting currency of a finance report: that of closed months, else that of all projects, else the US dollar.
import { convertedBy } from '../../../core/records/exchange-rates.ts'
import { dayIn } from '../../../core/tenants/reporting.ts'
import { allCurrencies } from '../../../lib/currencies.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { FINANCE_ZONE } from './zone.ts'

/** SQL: the reporting currency of the organization $1, found once for a whole statement. */
export const FINANCE_CURRENCY = '(select finance_currency($1))'

/** The reporting currency of the finance report of an organization. */
export async function financeCurrency(query: Query, organizationId: string): Promise<string> {
  const [row] = await query('select finance_currency($1) as currency', [organizationId])
  return row!.currency!
}

const codesWith = (decimals: number) =>
  [...allCurrencies].flatMap(([code, n]) => (n === decimals ? `'${code}'` : [])).join(', ')

// Almost all currencies have two.
const DECIMALS = `case ${[0, 3, 4].map((n) => `when ${FINANCE_CURRENCY} in (${codesWith(n)}) then ${n}`).join(' ')} else 2 end`

interface Amount {
  /** In major units. */
  amount: string
  currency: string
  /** The value in US dollars that is stored with it, or the amount itself if it is in US dollars; null without a rate. */
  usd: string
  /** The instant of whose day the exchange rate is. */
  at: string
}

/** SQL: the value of an amount in the reporting currency, in major units, by the same rule as that of figures; null without a rate. */
export const reportedValue = ({ amount, currency, usd, at }: Amount) => `case
  when ${FINANCE_CURRENCY} = 'USD' then ${usd}
  when ${currency} = ${FINANCE_CURRENCY} or ${amount} = 0 then ${amount}
  else (${convertedBy('$1', currency, FINANCE_CURRENCY, dayIn(at, FINANCE_ZONE), (from, to) => `round(${amount} * ${to} / ${from}, ${DECIMALS})`)}) end`
