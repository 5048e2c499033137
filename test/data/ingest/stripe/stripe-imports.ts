// Imports from Stripe: a simulated account, a database with projects, and a run of the import.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { Stripe } from 'stripe'
import { holdImport } from '../../../../src/data/ingest/stripe/hold.ts'
import { FIRST_STEP, type RunOptions, runImport } from '../../../../src/data/ingest/stripe/run.ts'
import { StripeSource } from '../../../../src/data/ingest/stripe/source.ts'
import { beginState, type ImportState, type StripeImportOptions } from '../../../../src/data/ingest/stripe/state.ts'
import { type Figure, figuresOf } from '../../../../src/data/ingest/stripe/tally.ts'
import { type Clock, systemClock } from '../../../../src/lib/clock.ts'
import type { Db } from '../../../../src/lib/pg/db.ts'
import { type Imports, openImports, type Project } from '../../../support/imports.ts'
import { tundishAgain } from '../../../support/resident.ts'
import { openStripeSimulator, type StripeSimulator, silent, TEST_KEY } from '../../../support/simulators.ts'

export const MERCHANT = 'acct_test'

export interface StripeImports {
  imports: Imports
  simulator: StripeSimulator
  stripe: Stripe
  /** `apiUrl`: of another account. `longestPauseMs`: between two tries of a call. */
  run(
    project: Project,
    options?: StripeImportOptions,
    more?: Partial<RunOptions> & { apiUrl?: string; longestPauseMs?: number },
  ): Promise<ImportState>
  close(): Promise<void>
}

export async function openStripeImports(
  simulated: Parameters<typeof openStripeSimulator>[0] = {},
): Promise<StripeImports> {
  const simulator = await openStripeSimulator(simulated)
  const imports = await openImports()
  return {
    imports,
    simulator,
    stripe: simulator.client(),
    async run(project, options = {}, more = {}) {
      const signal = more.signal ?? new AbortController().signal
      const name = { organizationId: project.organizationId, projectId: project.id, merchantId: MERCHANT }
      const held = (await holdImport(imports.db, name))!
      const { longestPauseMs = Number.POSITIVE_INFINITY } = more
      const sleep: Clock['sleep'] = (ms, ...others) => systemClock.sleep(Math.min(ms, longestPauseMs), ...others)
      const connection = {
        secretKey: TEST_KEY,
        apiUrl: more.apiUrl ?? simulator.url,
        clock: { ...systemClock, sleep },
        callsPerSecond: 1000,
        signal,
      }
      const source = new StripeSource(connection)
      try {
        const state = await beginState(held.query, name, options, { background: false, firstStep: FIRST_STEP })
        const app = { db: imports.db, log: silent, clock: systemClock }
        return await runImport(app as never, held, source, state, { pollMs: 20, ...more, signal })
      } finally {
        source.close()
        await held.release()
      }
    },
    async close() {
      await imports.stop()
      await simulator.cleanUp()
    },
  }
}

/** The sums of the account by Stripe's own client, `kind month CURRENCY: count sum` in Stripe's minor units. */
export async function accountSums(stripe: Stripe): Promise<string[]> {
  const sums = new Map<string, { count: number; sum: number }>()
  const add = (kind: string, created: number, currency: string, amount: number) => {
    const key = `${kind} ${new Date(created * 1000).toISOString().slice(0, 7)} ${currency.toUpperCase()}`
    const before = sums.get(key) ?? { count: 0, sum: 0 }
    sums.set(key, { count: before.count + 1, sum: before.sum + amount })
  }
  for await (const { status, created, currency, amount } of stripe.charges.list({ limit: 100 }))
    add(status === 'succeeded' ? 'payments' : 'failed payments', created, currency, amount)
  for await (const { status, created, currency, amount } of stripe.refunds.list({ limit: 100 })) {
    add('refunds', created, currency, amount)
    if (status === 'failed') add('failed refunds', created, currency, amount)
  }
  for await (const { balance_transactions, currency, amount } of stripe.disputes.list({ limit: 100 }))
    for (const moved of balance_transactions)
      add(moved.amount < 0 ? 'chargebacks' : 'reversed chargebacks', moved.created, currency, amount)
  return [...sums].map(([key, { count, sum }]) => `${key}: ${count} ${sum}`).sort()
}

// Stripe's decimals where they differ from ISO 4217: krónur have two that are always zero, ariary have none.
const SCALE: Record<string, number> = { ISK: 2, MGA: 0, JPY: 0, KWD: 3 }

/** The same sums of the stored payments, from the report and in Stripe's units. */
export async function storedSums({ imports }: StripeImports, project: Project): Promise<string[]> {
  const rows = await imports.rows(
    `select psp_transaction_type || ' ' || status as kind, to_char(psp_date at time zone 'UTC', 'YYYY-MM') as month,
       currency_code as currency, count(*) as n, sum(amount) as sum
     from report_transactions where organization_id = $1 group by 1, 2, 3`,
    [project.organizationId],
  )
  const kinds: Record<string, string> = {
    'sale succeeded': 'payments',
    'sale failed': 'failed payments',
    'refund refunded': 'refunds',
    'refund failed': 'failed refunds',
    'chargeback refunded': 'chargebacks',
    'chargeback_reversal succeeded': 'reversed chargebacks',
  }
  return rows
    .map(({ kind, month, currency, n, sum }) => {
      const units = Math.round(Number(sum) * 10 ** (SCALE[currency!] ?? 2))
      return `${kinds[kind!]} ${month} ${currency}: ${n} ${units}`
    })
    .sort()
}

/** The fees of the account by Stripe's own client, `CURRENCY: sum` in Stripe's minor units, with the fees' opposite sign. */
export async function accountFees(stripe: Stripe): Promise<string[]> {
  const sums = new Map<string, number>()
  for await (const { fee, currency } of stripe.balanceTransactions.list({ limit: 100 }))
    sums.set(currency, (sums.get(currency) ?? 0) - fee)
  return [...sums].map(([currency, sum]) => `${currency.toUpperCase()}: ${sum}`).sort()
}

/** The same of the finance report, which must have every fee. */
export async function reportedFees(
  { imports }: StripeImports,
  project: Project,
  masterKey = randomBytes(32).toString('base64'),
): Promise<string[]> {
  const env = { DATABASE_URL: imports.url, MASTER_KEY: masterKey }
  const year = new Date().getUTCFullYear()
  const sums = new Map<string, number>()
  for (const from of [year - 2, year - 1, year]) {
    const period = ['--from', `${from}-01-01`, '--to', `${from}-12-31`]
    const { code, stdout, stderr } = await tundishAgain(
      ['report', '--org', project.organizationId, ...period, '--json'],
      env,
    )
    if (code !== 0) throw new Error(stderr)
    for (const { fees, fees_unknown } of JSON.parse(stdout).totals) {
      if (fees_unknown > 0) throw new Error(`${fees_unknown} fees of ${from} are not known.`)
      for (const { fee, fee_currency } of fees)
        sums.set(fee_currency, (sums.get(fee_currency) ?? 0) + Math.round(fee * 100))
    }
  }
  return [...sums].map(([currency, sum]) => `${currency}: ${sum}`).sort()
}

export const differences = (state: ImportState): Figure[] =>
  figuresOf(state.tally).filter(({ stripe, here }) => stripe.count !== here.count || stripe.minor !== here.minor)

/** All records stored by an import, without the times of storing, and their counts. */
export const storedRecords = (db: Db, organizationId: string, projectId: string) =>
  db.query(
    `select 'profile' as kind, id, row(created_at, email, phone, country, locale)::text as content
     from profiles where project_id = $1
     union all select 'customer', external_id, row(email, profile_id)::text from customers where organization_id = $2
     union all select 'subscription', id, row(status, renews, price, currency, period_ends_at, profile_id, product_id)::text
     from subscriptions where project_id = $1
     union all select 'transaction', id, row(created_at, price, currency, profile_id, subscription_id)::text
     from transactions where project_id = $1
     union all select 'payment', trx_id::text,
       row(amount, currency_code, status, psp_transaction_type, psp_date, payment_method_token, meta_subs_id)::text
     from report_transactions where organization_id = $2
     union all select 'count', list, sum(n)::text from counts where project_id = $1 and field = '' group by list
     order by 1, 2`,
    [projectId, organizationId],
  )

/** Serves the API of Stripe by `listener` until the end of the test; returns its address. */
export async function serveInPlace(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
