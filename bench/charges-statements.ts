// What one charge asks of the database: recorded from a real one, in the transactions it uses.
import { oneOffCharge } from '../src/billing/charge/charge.ts'
import { readChargeRequest } from '../src/billing/charge/request.ts'
import type { BillingContext } from '../src/billing/context.ts'
import type { Db } from '../src/lib/pg/db.ts'
import { SimulatorProvider } from '../src/providers/simulator.ts'
import { fixedProviders } from '../test/support/fixed-providers.ts'
import type { ChargesRig } from './charges-rig.ts'
import { ORGANIZATION } from './generate.ts'
import { noting } from './record.ts'
import type { Recorded } from './tools.ts'

export const AMOUNT = '10.50'

/** One charge in this process over a database that remembers every statement and where its transactions begin and end. */
export async function recordCharge({ app, simulatorUrl }: ChargesRig): Promise<Recorded[]> {
  const recorded: Recorded[] = []
  const db = noting(app.db, (text, params) => recorded.push({ text, params }))
  // The account of the cards, so that it is known to take the charge at the first claim.
  const provider = new SimulatorProvider({ url: simulatorUrl, clock: app.clock, merchantId: 'main' })
  const providers = fixedProviders([provider])
  const context: BillingContext = { ...app, db, providers, providerTimeoutMs: app.config.providerTimeoutMs }
  const body = { external_id: 'pm_card_visa 1', amount: AMOUNT, currency_code: 'USD', idempotency_key: 'recorded' }
  const answer = await oneOffCharge(context, ORGANIZATION, readChargeRequest(body))
  provider.close()
  await addTypes(app.db, recorded)
  if (answer.checkout_status !== 'succeeded') throw new Error(`The recorded charge is ${answer.checkout_status}.`)
  return recorded
}

/** Asks the database what it takes the parameters for. */
async function addTypes(db: Db, statements: Recorded[]): Promise<void> {
  const { query, release } = await db.connect()
  for (const statement of statements.filter(({ params }) => params.length > 0)) {
    await query(`prepare recorded as ${statement.text}`)
    const rows = await query(
      "select unnest(parameter_types)::text as type from pg_prepared_statements where name = 'recorded'",
    )
    await query('deallocate recorded')
    statement.types = rows.map(({ type }) => type!)
  }
  release()
}
