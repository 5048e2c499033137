// Writes during a measurement: single transactions one by one, and a long import again and again.
import { Readable } from 'node:stream'
import { openApp } from '../src/app.ts'
import { readConfig } from '../src/config.ts'
import { importRecords } from '../src/data/ingest/load.ts'
import { openLog } from '../src/lib/log.ts'
import { addTransactions, transactionOf } from '../src/payments/billing/ledger/data-transaction.ts'
import { PROJECT } from './generate.ts'

const IMPORTED = 50_000
const PROFILE = 'pro_000000000000'

const app = await openApp(readConfig(process.env), { log: openLog('error', 2) })
const stopping = new AbortController()
process.on('SIGTERM', () => stopping.abort())
process.stdout.write('writing\n')
await Promise.allSettled([writeOneByOne(), importAgain()])
await app.close()

/** Writes transactions as a charge does. */
async function writeOneByOne(): Promise<void> {
  while (!stopping.signal.aborted) {
    await app.db.tx(async (query) => {
      const [begun] = await query<{ base: string }>('select begin_write($1) as base', [PROJECT])
      const payment = {
        project_id: PROJECT,
        profile_id: PROFILE,
        is_sandbox: true,
        currency_code: 'USD',
        priceMinor: 1999n,
        usdMinor: 1999n,
        psp_date: null,
        stamp: begun!.base,
      }
      await addTransactions(query, [transactionOf(payment)])
    })
  }
}

/** Each import moves the same subscriptions to another state, product and funnel, in one transaction. */
async function importAgain(): Promise<void> {
  for (let round = 0; !stopping.signal.aborted; round += 1) {
    const stream = () => Readable.from(lines(round))
    const options = { projectId: PROJECT, live: true, signal: stopping.signal }
    await importRecords(app, options, [{ name: 'writers', stream }])
  }
}

function* lines(round: number): Iterable<Buffer> {
  for (let n = 0; n < IMPORTED; n += 1) {
    const data = {
      id: `written_${n}`,
      created_at: '2025-12-31T00:00:00Z',
      status: round % 2 ? 'active' : 'cancelled',
      renews: true,
      billing_interval: 'month',
      billing_interval_count: 1,
      price: 1999,
      currency: 'USD',
      payment_provider: 'stripe',
      profile_id: PROFILE,
      product_id: `product_${(round + n) % 50}`,
      funnel_id: `funnel_${(round + n) % 20}`,
    }
    yield Buffer.from(`${JSON.stringify({ record: 'subscription', data })}\n`)
  }
}
