// An organization's totals of credits, by unit, and the operations about credits.
import { jsonOf } from '../../lib/json/json.ts'
import { Type } from '../../lib/shape/schema.ts'
import { decimal, integer, shape, text } from '../../lib/shape/shape.ts'
import { chargeCaps } from './charge-caps.ts'
import { creditAccounts } from './credit-accounts.ts'
import { creditDays } from './credit-days.ts'
import { creditGrants } from './credit-grants.ts'
import { creditRules } from './credit-rules.ts'
import { creditTopUps } from './credit-top-ups.ts'
import { creditUnits, PATH, TAG } from './credit-units.ts'
import { reading } from './operation.ts'

const totals = shape('CreditTotals', 't', {
  unit: text('Unit.', { example: 'tokens' }),
  sold: decimal('Granted by charges and requests.', { example: 1000 }),
  spent: decimal('Spent.', { example: 400 }),
  expired: decimal('Expired.', { example: 100 }),
  revoked: decimal('Taken back after refunds and disputes, without what was given back.', { example: 0 }),
  adjusted: decimal('Corrections, which may be negative.', { example: 0 }),
  outstanding: decimal('What customers can still use: a liability.', { example: 500 }),
  debts: decimal('What customers owe after refunds of spent credits.', { example: 0 }),
  customers: integer('Customers who have something left.', { example: 12 }),
})

// Sold and adjusted, less spent, expired and revoked, is what is outstanding less the debts. What has expired is booked within seconds;
// until then it counts as outstanding.
const TOTALS = `
  select u.unit, trim_scale(coalesce(sum(a.granted), 0)) as sold, trim_scale(coalesce(sum(a.spent), 0)) as spent,
    trim_scale(coalesce(sum(a.expired), 0)) as expired, trim_scale(coalesce(sum(a.revoked), 0)) as revoked,
    trim_scale(coalesce(sum(a.adjusted), 0)) as adjusted,
    trim_scale(coalesce(sum(greatest(a.balance, 0)), 0)) as outstanding,
    trim_scale(coalesce(sum(greatest(-a.balance, 0)), 0)) as debts, count(*) filter (where a.balance > 0) as customers
  from credit_units u left join credit_accounts a on a.organization_id = u.organization_id and a.unit = u.unit
  where u.organization_id = $1 group by u.unit`

const getTotals = reading({
  id: 'getCreditTotals',
  right: 'figures',
  command: 'credits show',
  path: PATH,
  tag: TAG,
  summary: 'Get what an organization has sold, and what is outstanding, by unit',
  columns: ['unit', 'sold', 'spent', 'expired', 'revoked', 'adjusted', 'outstanding', 'debts', 'customers'],
  response: Type.Object({ data: Type.Array(totals.schema) }, { title: 'CreditTotalsOut' }),
  async run({ db }, { params }) {
    const rows = await db.readLong({ text: `select ${totals.columns} from (${TOTALS}) t order by t.unit` }, [
      params.organization_id,
    ])
    return jsonOf({ data: totals.list(rows) })
  },
})

export const credits = [
  getTotals,
  ...creditDays,
  ...creditAccounts,
  ...creditGrants,
  ...creditUnits,
  ...creditRules,
  ...creditTopUps,
  ...chargeCaps,
] as const
