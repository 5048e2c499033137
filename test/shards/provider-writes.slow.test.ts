// What is stored of merchant accounts in the last step of a move, without any key: it waits for the end, and is not lost on the old shard.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openDb } from '../../src/lib/pg/db.ts'
import { isMoving } from '../../src/lib/pg/errors.ts'
import { storeFees } from '../../src/payments/providers/fees.ts'
import { storeEntries, storePayout } from '../../src/payments/providers/payouts.ts'
import { type ServerProcess, startProcess, tundish } from '../support/cli.ts'
import { openStripeSimulator, TEST_KEY } from '../support/simulators.ts'
import { until } from '../support/time.ts'
import { SIDES, type Side, setUpPair } from './pair.ts'

const stripe = await openStripeSimulator()
const servers = {} as Record<Side, ServerProcess>
const { clusters, moveWhile, numberOf, assertServedBy, settings } = setUpPair({
  env: async () => ({ STRIPE_API_URL: stripe.url }),
  ready: async (side, env) => {
    servers[side] = await startProcess(env)
  },
})
after(async () => {
  for (const side of SIDES) await servers[side].stop()
  await stripe.cleanUp()
})

const MERCHANT = 'acct_1TundishDialect0'
const SECRET = 'whsec_ofTheMovedAccount'
const ACCOUNT = { organizationId: 'shop', psp: 'stripe', merchantId: MERCHANT }

async function connectAccount(): Promise<void> {
  const words = ['merchant-account', 'connect', 'stripe', MERCHANT, '--org', 'shop', '--sandbox']
  const { code, stderr } = await tundish([...words, '--env-file', `${settings}/a.env`], {}, `${TEST_KEY}\n${SECRET}\n`)
  assert.equal(code, 0, stderr)
}

/** Sends a notification to a shard, and returns the status of the response. */
async function notify(side: Side, id: string): Promise<number> {
  const object = { id: 'pi_unknown', object: 'payment_intent', metadata: {} }
  const body = JSON.stringify({
    id,
    object: 'event',
    type: 'payment_intent.succeeded',
    livemode: false,
    data: { object },
  })
  const signature = stripe.client().webhooks.generateTestHeaderString({ payload: body, secret: SECRET })
  const response = await fetch(`${servers[side].url}/shop/v1/providers/stripe/${MERCHANT}/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'stripe-signature': signature },
    body,
  })
  await response.text()
  return response.status
}

const entry = (entryId: string) => ({
  ...{ entryId, type: 'charge', category: null, currencyCode: 'USD', source: null, description: null },
  ...{ amountMinor: 100n, feeMinor: 30n, netMinor: 70n, at: '2026-01-02T03:04:05Z' },
})
const FEE = {
  ...{ entryId: 'txn_1', transactionIds: ['ch_1'], move: 'sale' as const, currencyCode: 'USD' },
  ...{ amountMinor: 30n, at: '2026-01-02T03:04:05Z' },
}
const PAYOUT = {
  ...{ payoutId: 'po_1', amountMinor: 70n, currencyCode: 'USD', status: 'paid', isAutomatic: true },
  ...{ arrivesOn: '2026-01-03', createdAt: '2026-01-02T03:04:05Z', failureCode: null },
}

/** Begins the writes of an importer that follows the account; returns what each of them came to. */
function writeAll(side: Side): Promise<('stored' | 'moving')[]> {
  const db = openDb({ url: clusters[side].url, applicationName: 'test', connections: 4, readConnections: 1 })
  const writes = [
    storeEntries(db.query, ACCOUNT, [entry('txn_2')]),
    storePayout(db.query, ACCOUNT, PAYOUT, []),
    storeFees(db.query, ACCOUNT, [FEE]),
  ]
  const outcomes = writes.map((write) =>
    write.then(
      () => 'stored' as const,
      (error: unknown) => {
        if (isMoving(error)) return 'moving' as const
        throw error
      },
    ),
  )
  return Promise.all(outcomes).finally(() => db.close())
}

const TABLES = [
  'pending_notifications',
  'provider_notifications',
  'balance_entries',
  'provider_payouts',
  'provider_fees',
]
const countsOn = async (side: Side) => {
  const counts = await Promise.all(TABLES.map((table) => numberOf(side, table)))
  return Object.fromEntries(TABLES.map((table, n) => [table, counts[n]]))
}

// Those of `writeAll`, and the notification.
const WAITING = `pg_stat_activity where wait_event_type = 'Lock'
  and (application_name = 'test' or query like '%insert into pending_notifications%')`

for (const [step, from, to] of [
  ['Copying the rest', 'a', 'b'],
  ['Waiting for the directories', 'b', 'a'],
] as const)
  test(`a move from ${from} to ${to} while its accounts are written at the step “${step}”`, async () => {
    if (from === 'a') await connectAccount()
    let writes: Promise<('stored' | 'moving')[]> = Promise.resolve([])
    let status = Promise.resolve(0)
    const begin = async () => {
      status = notify(from, `evt_of_${from}`)
      writes = writeAll(from)
      await until('all to wait', async () => (await numberOf(from, WAITING)) === 4)
    }
    await moveWhile(step, begin, [from, to])
    assert.deepEqual([await status, await writes], [503, ['moving', 'moving', 'moving']])
    assert.deepEqual(new Set(Object.values(await countsOn(from))), new Set([0]))
    await assertServedBy(to)
    assert.equal(await notify(to, `evt_of_${from}`), 200)
    assert.deepEqual(await writeAll(to), ['stored', 'stored', 'stored'])
    await clusters[to].query(TABLES.map((table) => `delete from ${table}`).join(';'))
  })
