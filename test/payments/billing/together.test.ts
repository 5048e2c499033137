// Charges of one organization that come at the same time share statements and commits, and nothing else.
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, test } from 'node:test'
import { startBilling } from '../../support/billing.ts'
import { untilLocked } from '../../support/database.ts'
import { type Json, send } from '../../support/server.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 100 })
const billing = await startBilling({ PROVIDER_TIMEOUT_MS: '20000' })
const shop = await billing.organization()
after(async () => {
  agent.destroy()
  await billing.stop()
})

/** The n-th customer differs from its neighbours in card, profile, amount and metadata. */
const CARDS = ['pm_card_visa', 'pm_card_chargeDeclined', 'pm_card_mastercard'] as const
const amountOf = (n: number) => `${n + 1}.25`
const metadataOf = (n: number) => (n % 2 === 0 ? { client_metadata: { n, exact: `${n}` } } : {})
const isDeclined = (n: number) => CARDS[n % 3] === 'pm_card_chargeDeclined'

const MANY = 50

test('50 charges of 50 customers: each finds what is its own, in few transactions', async () => {
  const users = await Promise.all(
    Array.from({ length: MANY }, (_, n) => {
      return shop.customer({ token: CARDS[n % 3]!, ...(n % 4 < 2 && { profileId: `pro_${n}` }) })
    }),
  )
  const ask = () =>
    // Each is sent twice: the other one is a replay, or comes while the first is in progress.
    users.flatMap((user, n) => {
      const body = { external_id: user, amount: amountOf(n), currency_code: 'USD', idempotency_key: `k-${n}` }
      const one = { method: 'POST', body: { ...body, ...metadataOf(n) }, headers: ['service-secret-key', shop.key] }
      return [1, 2].map(() => send(agent, billing.server.url, `/${shop.id}/v1/payment/one_off_charge`, one))
    })
  const pending: ReturnType<typeof ask> = []
  // One charge waits for the clock of the organization to settle, and the others come meanwhile.
  const first = await shop.customer()
  await billing.db.tx(async (query) => {
    await query('select 1 from organization_clocks where organization_id = $1 for update', [shop.id])
    pending.push(shop.charge(first))
    await untilLocked(billing.db.query)
    pending.push(...ask())
    // A call that has its response now came after all of them.
    for (let n = 0; n < 3; n++) await shop.consumables(first)
    assert.equal((await billing.ledger()).length, 1, 'nobody is charged while the settlement before cannot go on')
  })
  const [, ...responses] = await Promise.all(pending)
  assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200])
  for (const [n, user] of users.entries()) await check(n, user, [responses[2 * n]!.body, responses[2 * n + 1]!.body])
  await checkSharing()
})

async function checkSharing(): Promise<void> {
  const [claims] = await billing.db.query(
    `select count(*) as orders, count(distinct created_at) as statements from orders where organization_id = $1`,
    [shop.id],
  )
  assert.equal(claims!.orders, String(MANY + 1))
  assert.ok(Number(claims!.statements) < MANY / 4, `${MANY} charges were claimed by ${claims!.statements} statements`)
  const [settled] = await billing.db.query(
    `select count(*) as rows, count(distinct xmin::text) as transactions, count(distinct trx_created_at) as stamps
     from report_transactions where organization_id = $1 and not imported`,
    [shop.id],
  )
  assert.equal(settled!.rows, String(MANY + 1))
  assert.equal(settled!.stamps, String(MANY + 1))
  const transactions = Number(settled!.transactions)
  assert.ok(transactions < (MANY * 3) / 4, `${MANY} charges were settled in ${transactions} transactions`)
}

async function check(n: number, user: string, responses: Json[]): Promise<void> {
  const [first, second] = responses
  assert.equal(first.order_id, second.order_id)
  assert.deepEqual(responses.map(({ idempotent_replay }) => idempotent_replay).sort(), [false, true])
  const [{ checkout_status }] = responses.filter(({ idempotent_replay }) => !idempotent_replay)
  assert.equal(checkout_status, isDeclined(n) ? 'failed' : 'succeeded')

  const [row, ...more] = await shop.report({ order_id: first.order_id })
  assert.deepEqual(more, [])
  assert.deepEqual([String(row.amount), row.status], [amountOf(n), checkout_status])
  const movements = await billing.ledger(first.order_id)
  assert.deepEqual(
    movements.map(({ amount }) => String(amount)),
    isDeclined(n) ? [] : [amountOf(n)],
  )
  const consumables = await shop.consumables(user)
  assert.deepEqual(
    consumables.map((one) => [one.order_id, String(one.amount)]),
    isDeclined(n) ? [] : [[first.order_id, amountOf(n)]],
  )
  await checkEvents(n, first.order_id, checkout_status)
}

async function checkEvents(n: number, orderId: string, status: string): Promise<void> {
  const [event, ...more] = await billing.db.query('select type, profile_id, data from events where object_id = $1', [
    orderId,
  ])
  assert.deepEqual(more, [])
  const { client_metadata, amount, external_id } = JSON.parse(event!.data!)
  assert.equal(event!.type, `charge.${status}`)
  assert.equal(event!.profile_id, n % 4 < 2 ? `pro_${n}` : null)
  assert.deepEqual({ client_metadata }, n % 2 === 0 ? metadataOf(n) : { client_metadata: null })
  assert.equal(String(amount), amountOf(n))
  const transactions = await billing.db.query(
    'select price from transactions where project_id = $1 and profile_id = $2',
    [shop.projectId, `pro_${n}`],
  )
  const isListed = n % 4 < 2 && status === 'succeeded'
  assert.deepEqual(
    transactions.map(({ price }) => price),
    isListed ? [String((n + 1) * 100 + 25)] : [],
    external_id,
  )
}
