// Stores what was spent on advertising.
import { convertedBy, joinRates } from '../../core/records/exchange-rates.ts'
import type { Query } from '../../lib/pg/types.ts'

export interface Spend {
  day: string
  source: string
  /** Empty: all of the source. */
  campaign: string
  currency: string
  /** In major units, as text. */
  amount: string
}

export interface SpendStored {
  rows: number
  days: number
  replaced: number
  without_usd: number
}

/** Replaces the amounts of the days and sources of `rows`, and marks the days whose figures change. */
export async function storeSpend(query: Query, projectId: string, rows: Spend[]): Promise<SpendStored> {
  const columns = [rows.map(({ day }) => day), rows.map(({ source }) => source)]
  const gone = await query(REMOVE, [projectId, ...columns])
  const stored = await query(STORE, [
    projectId,
    ...columns,
    rows.map(({ campaign }) => campaign),
    rows.map(({ currency }) => currency),
    rows.map(({ amount }) => amount),
  ])
  const days = [...new Set(rows.map(({ day }) => day))]
  await query(
    `insert into figure_marks (project_id, family, day) select $1, 'visits', day from unnest($2::date[]) days (day)`,
    [projectId, days],
  )
  return {
    rows: stored.length,
    days: days.length,
    replaced: gone.length,
    without_usd: stored.filter(({ unknown }) => unknown === 't').length,
  }
}

const REMOVE = `
  delete from spend where project_id = $1 and (day, source) in (select * from unnest($2::date[], $3::text[])) returning 1`

// A rate gives US dollars for the currency by way of the euro.
const STORE = `
  insert into spend (project_id, day, source, campaign, currency_code, amount, amount_usd)
  select $1, s.day, s.source, s.campaign, s.currency, s.amount,
    case when s.currency = 'USD' or s.amount = 0 then s.amount
      else round(s.amount * rates.usd_per_euro / rates.currency_per_euro, 2) end
  from (
    select day, source, campaign, currency, sum(amount) as amount
    from unnest($2::date[], $3::text[], $4::text[], $5::text[], $6::numeric[]) given (day, source, campaign, currency, amount)
    group by day, source, campaign, currency) s
  join projects p on p.id = $1
  ${joinRates('p.organization_id', 's.currency', 's.day')}
  returning case (select reporting_currency from projects where id = $1)
    when 'USD' then amount_usd is null
    when currency_code then false
    else amount <> 0 and not exists (${convertedBy(
      '(select organization_id from projects where id = $1)',
      'spend.currency_code',
      '(select reporting_currency from projects where id = $1)',
      'spend.day',
      () => '1',
    )}) end as unknown`
