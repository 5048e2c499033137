// The doctor's check of exchange rates: whether they are as new as the amounts that need them.
import type { Config } from '../../config.ts'
import type { Db } from '../../lib/pg/db.ts'
import { count } from '../../lib/text.ts'
import { type Finding, ofTenant, ok, warning } from './finding.ts'

// Banks are closed for up to four days at Easter, of which two are working days elsewhere.
const OLD_DAYS = 3

/** Returns no finding if no amount needs rates and none are fetched. */
export async function checkRates(db: Db, { ratesUrl }: Pick<Config, 'ratesUrl'>): Promise<Finding[]> {
  const [fetch] =
    ratesUrl === undefined ? [] : await db.query('select error, failures from rates_fetch where url = $1', [ratesUrl])
  const findings: Finding[] = []
  if (fetch?.error) {
    const message = `Exchange rates cannot be fetched from RATES_URL: ${fetch.error}`
    findings.push(warning('rates', message, 'Correct RATES_URL, then try it: tundish rates fetch'))
  }
  for (const { organization_id, day, age } of await db.query(OLD, [OLD_DAYS])) {
    const message = day
      ? `The exchange rates of organization ${organization_id} are of ${day}, ${count(Number(age), 'working day')} old, and it has payments in other currencies.`
      : `The organization ${organization_id} has payments in other currencies, and no exchange rates.`
    const fix = 'Set RATES_URL to fetch them every working day, or load them: tundish rates load'
    findings.push(ofTenant({ organization_id: organization_id! }, warning('rates', message, fix)))
  }
  if (findings.length > 0 || ratesUrl === undefined) return findings
  return [ok('rates', 'Exchange rates are fetched from RATES_URL.')]
}

// Figures of the last month say which currencies there are, without a look at payments.
const OLD = `
  select o.id as organization_id, newest.day::text, newest.age from organizations o
  cross join lateral (
    select max(x.day) as day, (
      select count(*) from generate_series(max(x.day) + 1, (db_clock() at time zone 'UTC')::date, interval '1 day') d
      where extract(isodow from d) < 6) as age
    from exchange_rates x where x.organization_id = o.id and x.currency_code = 'USD') newest
  where (newest.day is null or newest.age > $1)
    and exists (
      select from projects p join figures_sales f on f.project_id = p.id
      where p.organization_id = o.id and f.split = '' and not f.test and f.currency <> p.reporting_currency
        and f.day > (db_clock() at time zone 'UTC')::date - 30)
  order by o.id limit 100`
