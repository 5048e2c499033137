// The statements of one charge, recorded from a real one, with its transactions.

import type { Db } from '../src/lib/pg/db.ts'
import { readChargeRequest } from '../src/payments/billing/charge/request.ts'
import type { BillingContext } from '../src/payments/billing/context.ts'
import { oneOffCharge } from '../src/payments/billing/kinds.ts'
import { SimulatorProvider } from '../src/payments/providers/simulator.ts'
import { fixedProviders } from '../test/payments/billing/scripted-provider.ts'
import type { ChargesRig } from './charges-rig.ts'
import { ORGANIZATION } from './generate.ts'
import { recording } from './record.ts'
import type { Recorded } from './tools.ts'

export const AMOUNT = '10.50'

/** Makes one charge in this process, and returns every statement and the beginning and end of each transaction. */
export async function recordCharge({ app, simulatorUrl }: ChargesRig): Promise<Recorded[]> {
  const recorded: Recorded[] = []
  const db = recording(app.db, (text, params) => recorded.push({ text, params }))
  // With the merchant account of the cards, so that the first claim finds it.
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

/** Adds the types that the database infers for the parameters. */
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
