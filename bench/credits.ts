// The case "credits": spends of distinct customers and of one, compared with a ledger written by hand, and what caps cost a charge.
import { randomUUID } from 'node:crypto'
import { chargeWithoutPause, Line, type Target } from './charges-clients.ts'
import { CARDS, type ChargesRig, CUSTOMERS, openChargesRig } from './charges-rig.ts'
import { AMOUNT } from './charges-statements.ts'
import { ORGANIZATION } from './generate.ts'
import { alternate, type Figures, percentiles, type Result, type Run } from './measure.ts'
import type { Options } from './options.ts'
import { withCpu } from './requests.ts'
import { startLogged, startProgram } from './rig.ts'

const CONNECTIONS = 32
const WARM_UP_SECONDS = 15
const CHARGES_AT_ONCE = 32
// The clients check that what they were told is what is left.
const GRANTED = 1_000_000_000

/** Spends as fast as responses arrive, in turn with the reference; then charges in turn with and without caps. */
export async function measureCredits(options: Options, say: (text: string) => void): Promise<Result> {
  const rig = await openChargesRig(options, say)
  try {
    await grantAll(rig)
    const plain = await startProgram([], { DATABASE_URL: rig.databaseUrl }, rig.closers, 'references/credits.ts')
    const run = (url: string, customers: number) => spending(url, rig.organizationKey, customers)
    const measure = async (name: string, customers: number) => {
      for (const { url } of [rig.ours, plain]) await run(url, customers)(Math.min(options.seconds * 5, WARM_UP_SECONDS))
      const runs = {
        ours: withCpu(rig, rig.ours, run(rig.ours.url, customers)),
        plain: withCpu(rig, plain, run(plain.url, customers)),
      }
      return alternate(name, 'spends', runs, options)
    }
    const distinct = await measure('credits', CUSTOMERS)
    say('credits of one customer…')
    const { contenders, ratios } = await measure('one customer', 1)
    await compareLedger(rig)
    say('charges with caps…')
    return { ...distinct, figures: { oneCustomer: { contenders, ratios }, caps: await measureCaps(rig, options) } }
  } finally {
    await rig.close()
  }
}

const nameOf = (n: number) => `pm_card_visa ${n}`

/** An account for each customer, with a grant that nothing uses up. */
async function grantAll({ app: { db } }: ChargesRig): Promise<void> {
  await db.query('insert into credit_clocks (organization_id) values ($1)', [ORGANIZATION])
  await db.query(
    `insert into credit_units (organization_id, unit, name, created_at) values ($1, 'tokens', 'Tokens', db_clock())`,
    [ORGANIZATION],
  )
  await db.query(
    `insert into credit_accounts (organization_id, external_id, unit, account_id, granted, created_at, updated_at)
     select organization_id, external_id, 'tokens', gen_random_uuid(), $2, db_clock(), db_clock() from customers
     where organization_id = $1`,
    [ORGANIZATION, GRANTED],
  )
  await db.query(
    `insert into credit_grants (organization_id, external_id, unit, grant_id, amount, remaining, created_at)
     select organization_id, external_id, unit, gen_random_uuid(), granted, granted, db_clock() from credit_accounts`,
  )
  await db.query(
    `insert into credit_entries (organization_id, project_id, created_at, updated_at, entry_id, external_id, unit, account,
       amount, balance, cause)
     select organization_id, project_id, a.at, a.at, gen_random_uuid(), external_id, unit, 'granted', granted, granted, 'grant'
     from (select *, db_clock() - row_number() over () * interval '1 microsecond' as at from credit_accounts) a
     join customers using (organization_id, external_id)`,
  )
  await db.query('vacuum analyze')
}

function spending(url: string, key: string, customers: number): Run {
  return async (seconds) => {
    const begun = performance.now()
    const until = begun + seconds * 1000
    const times: number[] = []
    let turn = 0
    const work = Array.from({ length: CONNECTIONS }, async () => {
      const line = await Line.open(url)
      while (performance.now() < until) {
        const sent = performance.now()
        await line.send(requestOf(url, key, nameOf(1 + (turn++ % customers))))
        times.push(performance.now() - sent)
      }
      line.close()
    })
    await Promise.all(work)
    return { perSecond: (times.length * 1000) / (performance.now() - begun), ...percentiles(times) }
  }
}

function requestOf(url: string, key: string, externalId: string): string {
  const body = `{"external_id":"${externalId}","unit":"tokens","amount":1,"idempotency_key":"${randomUUID()}"}`
  return [
    `POST /${ORGANIZATION}/v1/credits/spend HTTP/1.1`,
    `host: ${new URL(url).host}`,
    `service-secret-key: ${key}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

/** Throws unless every balance is the sum of its entries. */
async function compareLedger({ app: { db } }: ChargesRig): Promise<void> {
  const [row] = await db.query(
    `select count(*) as n from credit_accounts a join (
       select external_id, sum(amount) as sum, count(*) as entries from credit_entries group by 1) e using (external_id)
     where a.balance <> e.sum or a.spent <> e.entries - 1`,
  )
  if (row!.n !== '0') throw new Error(`${row!.n} balances are not the sums of their entries.`)
}

const CAPS = [
  ['customer', 'day', '', 1_000_000],
  ['customer', 'month', 'USD', 100_000_000],
] as const

/** Charges at two servers in turn: one has seen caps, which are there while it is measured, and the other has not. */
async function measureCaps(rig: ChargesRig, options: Options): Promise<Record<string, Figures | undefined>> {
  const { app, ours, organizations, env, closers, simulatorUrl, folder } = rig
  const capped = await startLogged(['serve'], { ...env, SIMULATOR_URL: simulatorUrl }, closers, `${folder}/capped.log`)
  const charging = (url: string): Run => {
    const target: Target = { url, organizations, amount: AMOUNT, customers: CUSTOMERS }
    return async (seconds) => {
      const begun = performance.now()
      const entries = await chargeWithoutPause(target, CARDS['at once'], CHARGES_AT_ONCE, seconds)
      const perSecond = (entries.length * 1000) / (performance.now() - begun)
      return { perSecond, ...percentiles(entries.map(({ ms }) => ms)) }
    }
  }
  const withCaps: Run = async (seconds) => {
    for (const [scope, per, currency, most] of CAPS)
      await app.db.query(
        `insert into charge_caps (organization_id, scope, per, currency_code, most, created_at)
         values ($1, $2, $3, $4, $5, db_clock())`,
        [ORGANIZATION, scope, per, currency, most],
      )
    const sample = await withCpu(rig, capped, charging(capped.url))(seconds)
    await app.db.query('delete from charge_caps')
    return sample
  }
  const without = withCpu(rig, ours, charging(ours.url))
  for (const run of [withCaps, without]) await run(Math.min(options.seconds * 5, WARM_UP_SECONDS))
  const { contenders } = await alternate('caps', 'charges', { ours: withCaps, plain: without }, options)
  return { withCaps: contenders.ours, without: contenders.plain }
}
