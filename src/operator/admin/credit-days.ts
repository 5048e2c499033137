// An organization's credits by unit and day: sold, spent, expired, revoked, adjusted, and what is outstanding at the end of the day.
import { dayIn } from '../../core/tenants/reporting.ts'
import { DAY_MS, readDay } from '../../lib/days.ts'
import { invalidValue } from '../../lib/errors.ts'
import { jsonOf } from '../../lib/json/json.ts'
import { Type } from '../../lib/shape/schema.ts'
import { decimal, integer, shape, text } from '../../lib/shape/shape.ts'
import { dayBegins, FINANCE_ZONE, financeZone } from '../../payments/billing/finance/zone.ts'
import { PATH, TAG } from './credit-units.ts'
import { zoneField } from './finance.ts'
import { reading } from './operation.ts'

const creditDay = shape('CreditDay', 'd', {
  day: text('The day, in the time zone of the finance report.', { example: '2026-01-31' }),
  unit: text('The unit.', { example: 'tokens' }),
  sold: decimal('Granted by charges and requests.', { example: 1000 }),
  spent: decimal('Spent.', { example: 400 }),
  expired: decimal('Expired.', { example: 100 }),
  revoked: decimal('Taken back after refunds and disputes, without what was given back.', { example: 0 }),
  adjusted: decimal('Corrections, which may be negative.', { example: 0 }),
  outstanding: decimal('The sum of all balances at the end of the day, of which debts are taken off.', {
    example: 500,
  }),
  entries: integer('Entries of the day.', { example: 12 }),
})

// Three years, like figures.
const MAX_DAYS = 1100

const day = (description: string) => Type.String({ description, maxLength: 64, examples: ['2026-01-31'] })

// What is outstanding at the end of a day is what is now, without what came after it: only the entries since the period are read.
const DAYS = `
  with moved as materialized (
    select e.unit, ${dayIn('e.created_at', FINANCE_ZONE)} as day, count(*) as entries, sum(e.amount) as moved,
      coalesce(sum(e.amount) filter (where e.account = 'granted'), 0) as sold,
      coalesce(-sum(e.amount) filter (where e.account = 'spent'), 0) as spent,
      coalesce(-sum(e.amount) filter (where e.account = 'expired'), 0) as expired,
      coalesce(-sum(e.amount) filter (where e.account = 'revoked'), 0) as revoked,
      coalesce(sum(e.amount) filter (where e.account = 'adjusted'), 0) as adjusted
    from credit_entries e
    where e.organization_id = $1 and e.created_at >= ${dayBegins('$2')}
    group by 1, 2),
  present as materialized (
    select u.unit, coalesce(sum(a.balance), 0) as balance from credit_units u
    left join credit_accounts a on a.organization_id = u.organization_id and a.unit = u.unit
    where u.organization_id = $1 group by u.unit)
  select m.day, m.unit, m.entries, trim_scale(m.sold) as sold, trim_scale(m.spent) as spent, trim_scale(m.expired) as expired,
    trim_scale(m.revoked) as revoked, trim_scale(m.adjusted) as adjusted,
    trim_scale(p.balance - coalesce(sum(m.moved) over (partition by m.unit order by m.day desc
      rows between unbounded preceding and 1 preceding), 0)) as outstanding
  from moved m join present p on p.unit = m.unit`

const getDays = reading({
  id: 'getCreditDays',
  right: 'figures',
  command: 'credits days',
  path: `${PATH}/days`,
  tag: TAG,
  summary: 'Get credits by day and unit',
  description: 'Only days with entries, the newest first.',
  query: Type.Object({
    from: day('The first day, in the time zone of the finance report.'),
    to: Type.Optional(day('The last day; today if left out.')),
    unit: Type.Optional(Type.String({ description: 'Only this unit.' })),
  }),
  columns: ['day', 'unit', 'sold', 'spent', 'expired', 'revoked', 'adjusted', 'outstanding'],
  response: Type.Object(
    { time_zone: zoneField, data: Type.Array(creditDay.schema, { description: 'The newest day first.' }) },
    { title: 'CreditDays' },
  ),
  checkInput({ query }) {
    const { from, to } = query
    const first = Date.parse(readDay('from', from))
    const days = to === undefined ? 0 : (Date.parse(readDay('to', to)) - first) / DAY_MS
    if (days < 0) throw invalidValue('The first day must not be after the last.')
    if (days > MAX_DAYS) throw invalidValue('The period must have at most three years.')
  },
  async run({ db }, { params, query }) {
    const { from, to = null, unit = null } = query
    const rows = await db.readLong(
      {
        text: `select ${creditDay.columns} from (${DAYS}) d
          where ($3::date is null or d.day <= $3::date) and ($4::text is null or d.unit = $4)
          order by d.day desc, d.unit`,
      },
      [params.organization_id, from, to, unit],
    )
    return jsonOf({ time_zone: await financeZone(db.query, params.organization_id), data: creditDay.list(rows) })
  },
})

export const creditDays = [getDays] as const
