// Moves between shards whose clocks differ by hours: no stamp goes back, and what is due is not due hours later or earlier.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { move } from '../../src/operations/shards/move.ts'
import { type ServerProcess, startProcess } from '../support/cli.ts'
import type { Json } from '../support/server.ts'
import { openSimulator } from '../support/simulators.ts'
import { setDatabaseClock, until } from '../support/time.ts'
import { type Side, setUpPair } from './pair.ts'

const simulator = await openSimulator()
const servers = {} as Record<Side, ServerProcess>
const settings = {} as Record<Side, Record<string, string>>
const { clusters, shops, between, assertServedBy } = setUpPair({
  env: async () => ({ SIMULATOR_URL: simulator.url }),
  ready: async (side, env) => {
    settings[side] = env
    servers[side] = await startProcess(env)
  },
})
after(async () => {
  for (const server of Object.values(servers)) await server.stop()
  await simulator.cleanUp()
})

async function call(at: Side, path: string, body?: object): Promise<{ headers: Headers; body: Json }> {
  const { projectKey, billingKey } = shops.a
  const headers = { 'Service-Secret': projectKey, 'Service-Secret-Key': billingKey, 'Content-Type': 'application/json' }
  const response = await fetch(`${servers[at].url}${path}`, {
    headers,
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  assert.equal(response.status, 200)
  return { headers: response.headers, body: (await response.json()) as Json }
}

const charge = (at: Side, customer = 'user-0') =>
  call(at, '/shop/v1/payment/one_off_charge', {
    external_id: customer,
    amount: '1.00',
    currency_code: 'USD',
    idempotency_key: randomUUID(),
  })

async function horizonAt(at: Side): Promise<string> {
  const { headers } = await call(at, '/public/v1/transactions?filter[updated_at.from]=2000-01-01T00:00:00Z')
  return headers.get('x-sync-horizon')!
}

/** All rows of the report and all transactions, in the order of their stamps. */
async function stampsAt(at: Side): Promise<{ report: string[]; transactions: string[] }> {
  const report = await call(at, '/shop/v1/transaction_report', { last_transaction_date: '2002-01-01T00:00:00Z' })
  const stored = await clusters[at].query(`
    select to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
    from transactions where project_id = 'shop-app' order by updated_at`)
  return {
    report: report.body.transactions.map((row: Json) => row.trx_created_at),
    transactions: stored.map((row) => row['at']!),
  }
}

/** A charge of unknown outcome that was not found at the provider ten seconds ago, and is looked at again in ten minutes. */
async function leaveUnknown(at: Side): Promise<void> {
  await clusters[at].query(`
    update report_transactions set payment_method_token = 'sim_charge_then_drop'
    where organization_id = 'shop' and external_id = 'user-1'`)
  await simulator.stop()
  await clusters[at].query(`
    insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, psp,
      psp_merchant_id, region, payment_method_token, source_trx_id, provider_key, created_at, not_found_at, handed_over_at,
      next_look_at)
    select organization_id, gen_random_uuid(), external_id, 'shop-app', gen_random_uuid(), 1, 'USD', psp, psp_merchant_id,
      region, payment_method_token, trx_id, gen_random_uuid()::text, db_clock() - interval '20 seconds',
      db_clock() - interval '10 seconds', db_clock() - interval '10 seconds', db_clock() + interval '10 minutes'
    from report_transactions where organization_id = 'shop' and external_id = 'user-1' limit 1`)
}

/** How old it is by the shard's clock, and in how many seconds it is due. */
async function ageAt(at: Side): Promise<{ age: number; notFound: number; due: number }> {
  const [row] = await clusters[at].query(`
    select extract(epoch from db_clock() - coalesce(begun_at, created_at)) as age, extract(epoch from db_clock() - not_found_at) as not_found,
      extract(epoch from next_look_at - db_clock()) as due
    from orders where organization_id = 'shop' and status = 'processing'`)
  return { age: Number(row!['age']), notFound: Number(row!['not_found']), due: Number(row!['due']) }
}

/** Moves the shop to a shard whose clock differs, and charges there. */
async function moveTo(to: Side, ahead: string | undefined): Promise<void> {
  const from = to === 'a' ? 'b' : 'a'
  await setDatabaseClock(clusters[to].url, ahead)
  await until('the server to be back', async () => (await fetch(`${servers[to].url}/health/ready`)).status === 200)
  await charge(from)
  const before = await stampsAt(from)
  const horizon = await horizonAt(from)
  await move({ ...between(from, to), say: () => {} })
  await assertServedBy(to)
  assert.ok((await horizonAt(to)) >= horizon)
  await charge(to)
  const after = await stampsAt(to)
  for (const kind of ['report', 'transactions'] as const) {
    assert.deepEqual(after[kind].slice(0, -1), before[kind])
    assert.ok(after[kind].at(-1)! > before[kind].at(-1)!, kind)
    assert.ok(after[kind].at(-1)! >= horizon, kind)
  }
  assert.ok((await horizonAt(to)) >= horizon)
}

/** Starts a process of the new shard when the charge was copied there: it makes due what a clock that was set back has postponed. */
async function startInTheMidst(at: Side): Promise<void> {
  await until('the copy of the charge', async () => (await clusters[at].query(IN_PROGRESS)).length === 1)
  await (await startProcess(settings[at])).stop()
}

const IN_PROGRESS = "select from orders where organization_id = 'shop' and status = 'processing'"

test('to a shard that is two hours behind', async () => {
  await moveTo('b', '-2 hours')
})

test('back from there, and to one that is three hours ahead', async () => {
  await moveTo('a', undefined)
  await moveTo('b', '3 hours')
})

test('a charge of unknown outcome keeps its age and its turn, on a shard behind and on one ahead', async () => {
  await leaveUnknown('b')
  for (const [from, to, ahead] of [
    ['b', 'a', undefined],
    ['a', 'b', '5 hours'],
  ] as const) {
    await setDatabaseClock(clusters[to].url, ahead)
    const beganMs = performance.now()
    const before = await ageAt(from)
    const say = async (step: string) => {
      if (step === 'Stopping requests') await startInTheMidst(to)
    }
    await move({ ...between(from, to), say })
    const after = await ageAt(to)
    const passedS = (performance.now() - beganMs) / 1000 + 1
    for (const name of ['age', 'notFound'] as const)
      assert.ok(after[name] >= before[name] && after[name] <= before[name] + passedS, `${name}: ${after[name]}`)
    assert.ok(after.due <= before.due && after.due >= before.due - passedS, `due: ${after.due}`)
  }
})
