// Charges of several organizations share statements and commits; data, locks and errors stay with their organization.
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import type { Statement } from '../../../src/lib/pg/types.ts'
import { addPayment, type Organization, startBilling } from '../../support/billing.ts'
import { column } from '../../support/rows.ts'
import type { ApiResponse } from '../../support/server.ts'

const CUSTOMERS = 10

let one: Organization
let other: Organization
let users: string[]

/** Holds back the server's claims, so that further ones form a batch behind them. */
let gate: Promise<void> | undefined
const behindGate = (db: Db): Db => ({
  ...db,
  query: async (statement, params) => {
    if ((statement as Statement).name === 'claim orders') await gate
    return db.query(statement, params)
  },
})

const billing = await startBilling({ PROVIDER_TIMEOUT_MS: '20000' }, {}, behindGate)
after(() => billing.stop())

let made = 0
/** Two organizations whose customers, profiles and payments have the same ids; every second card of the other is declined. */
beforeEach(async () => {
  made += 1
  one = await billing.organization(`one-${made}`)
  other = await billing.organization(`other-${made}`)
  users = await Promise.all(
    Array.from({ length: CUSTOMERS }, (_, n) => one.customer({ profileId: `pro_${made}_${n}` })),
  )
  await billing.db.query(
    `insert into profiles (project_id, id, created_at, updated_at)
     select $1, id, created_at, updated_at from profiles where project_id = $2`,
    [other.projectId, one.projectId],
  )
  await billing.db.query(
    `insert into customers (organization_id, external_id, project_id, profile_id, created_at, updated_at)
     select $1, external_id, $2, profile_id, created_at, updated_at from customers where organization_id = $3`,
    [other.id, other.projectId, one.id],
  )
  for (const [n, user] of users.entries())
    await addPayment(billing.db, other.id, user, { token: isDeclined(n) ? 'pm_card_chargeDeclined' : 'pm_card_visa' })
})

const isDeclined = (n: number) => n % 2 === 1
const amountOf = (shop: Organization, n: number) => (shop === one ? `${n + 1}.25` : `${n + 1}.75`)

/** The charge of the n-th customer, under a key that both organizations use. */
const charge = (shop: Organization, n: number) =>
  shop.charge(users[n]!, {
    amount: amountOf(shop, n),
    idempotency_key: `key-${n}`,
    client_metadata: { shop: shop.id, n },
  })

/** Sends these charges so that they are claimed in one batch, behind one charge that opens the way. */
async function together(charges: () => Promise<ApiResponse>[]): Promise<Promise<ApiResponse>[]> {
  const first = await one.customer()
  let open = () => {}
  gate = new Promise((resolve) => {
    open = resolve
  })
  const ahead = one.charge(first)
  // Calls that are not batched: what was sent before them has arrived when they have their responses.
  for (let n = 0; n < 3; n++) await one.consumables(first)
  const responses = charges()
  for (let n = 0; n < 3; n++) await one.consumables(first)
  open()
  gate = undefined
  await ahead
  return responses
}

test('charges of the same customers and keys: each organization has its own, in few transactions', async () => {
  const pairs = users.flatMap((_, n) => [one, other].map((shop) => ({ shop, n })))
  const responses = await Promise.all(await together(() => pairs.map(({ shop, n }) => charge(shop, n))))
  assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200])
  for (const [place, { shop, n }] of pairs.entries()) await check(shop, n, responses[place]!)
  const replays = await Promise.all(pairs.map(({ shop, n }) => charge(shop, n)))
  assert.deepEqual(
    replays.map(({ body }) => [body.order_id, body.idempotent_replay]),
    responses.map(({ body }) => [body.order_id, true]),
  )
  const [shared] = await billing.db.query(
    `select count(*) as orders, count(distinct created_at) as claims from orders
     where organization_id = any($1) and idempotency_key like 'key-%'`,
    [[one.id, other.id]],
  )
  assert.equal(shared!.orders, String(2 * CUSTOMERS))
  assert.ok(Number(shared!.claims) < CUSTOMERS, `${shared!.claims} statements for ${2 * CUSTOMERS} claims`)
})

async function check(shop: Organization, n: number, { body }: ApiResponse): Promise<void> {
  const status = shop === other && isDeclined(n) ? 'failed' : 'succeeded'
  const isPaid = status === 'succeeded'
  assert.equal(body.checkout_status, status)
  const amount = amountOf(shop, n)
  const movements = await billing.ledger(body.order_id)
  assert.deepEqual(
    movements.map((movement) => String(movement.amount)),
    isPaid ? [amount] : [],
  )
  const [row, ...more] = await shop.report({ order_id: body.order_id })
  assert.deepEqual([more, String(row.amount), row.status], [[], amount, status])
  const rows = (text: string) => billing.db.query(text, [body.order_id])
  const [order] = await rows('select organization_id, project_id, client_metadata from orders where order_id = $1')
  assert.deepEqual([order!.organization_id, order!.project_id], [shop.id, shop.projectId])
  assert.deepEqual(JSON.parse(order!.client_metadata!), { shop: shop.id, n })
  const [event] = await rows('select project_id, profile_id, data from events where object_id = $1')
  assert.deepEqual([event!.project_id, event!.profile_id], [shop.projectId, `pro_${made}_${n}`])
  assert.equal(String(JSON.parse(event!.data!).amount), amount)
  const consumables = await shop.consumables(users[n]!)
  assert.deepEqual(
    consumables.map((one) => String(one.amount)),
    isPaid ? [amount] : [],
  )
  const paid = await billing.db.query('select price from transactions where project_id = $1 and profile_id = $2', [
    shop.projectId,
    `pro_${made}_${n}`,
  ])
  assert.deepEqual(column(paid, 'price'), isPaid ? [amount.replace('.', '')] : [])
  const [totals] = await billing.db.query(
    `select (select sum(n) from counts where project_id = $1 and list = 'transactions') as counted,
       (select count(*) from transactions where project_id = $1) as there`,
    [shop.projectId],
  )
  assert.equal(totals!.counted, totals!.there)
}

const LOCKS = {
  'the clock of its report': 'select 1 from organization_clocks where organization_id = $1 for update',
  'the profiles of its customers':
    'select 1 from profiles p join projects j on j.id = p.project_id where j.organization_id = $1 for update of p',
}

for (const [name, lock] of Object.entries(LOCKS)) {
  test(`an organization waits for ${name}, and another whose charges are in the same batch does not`, async () => {
    let held: Promise<ApiResponse>[] = []
    await billing.db.tx(async (query) => {
      await query(lock, [other.id])
      const responses = await together(() => users.flatMap((_, n) => [charge(one, n), charge(other, n)]))
      held = responses.filter((_, place) => place % 2 === 1)
      const free = await Promise.all(responses.filter((_, place) => place % 2 === 0))
      assert.deepEqual([...new Set(free.map(({ body }) => body.checkout_status))], ['succeeded'])
      const [settled] = await query(
        "select count(*) as n from orders where organization_id = $1 and status <> 'processing'",
        [other.id],
      )
      assert.equal(settled!.n, '0')
    })
    const responses = await Promise.all(held)
    assert.deepEqual(
      responses.map(({ body }) => body.checkout_status),
      users.map((_, n) => (isDeclined(n) ? 'failed' : 'succeeded')),
    )
  })
}

test('an organization whose settlements fail leaves those of another in the same batch alone', async () => {
  await billing.db.query('delete from organization_clocks where organization_id = $1', [other.id])
  const responses = await Promise.all(await together(() => users.flatMap((_, n) => [charge(one, n), charge(other, n)])))
  const statuses = (of: number) => [
    ...new Set(responses.filter((_, place) => place % 2 === of).map(({ body }) => body.checkout_status)),
  ]
  assert.deepEqual([statuses(0), statuses(1)], [['succeeded'], ['processing']])
})
