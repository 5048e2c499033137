// The commands of billing as an operator runs them: rates load, reconcile, charges resolve.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { reconcile } from '../../src/billing/unknown/reconcile.ts'
import type { Movement } from '../../src/providers/provider.ts'
import { type Billing, type Organization, settled, startBilling } from '../support/billing.ts'
import { PROGRAM_ENV, tundish } from '../support/cli.ts'
import { fixedProviders } from '../support/fixed-providers.ts'
import { scriptedProvider, verdict } from '../support/scripted-provider.ts'
import { silent } from '../support/simulator.ts'

let billing: Billing
let shop: Organization
let folder: string
before(async () => {
  billing = await startBilling({}, { worker: false })
  shop = await billing.organization()
  folder = await mkdtemp(join(tmpdir(), 'tundish-billing-'))
})
after(async () => {
  await billing.stop()
  await rm(folder, { recursive: true })
})

const run = (...args: string[]) => tundish(args, billing.server.env)

describe('rates load', () => {
  test('keeps the rates for all organizations, or for one, and says what it loaded', async () => {
    const file = join(folder, 'rates.csv')
    const today = new Date().toISOString().slice(0, 10)
    await writeFile(file, `date,currency,per_euro\n${today},USD,1.25\n${today},GBP,0.5\n${today},GBP,0.8\n`)
    const { code, stdout } = await run('rates', 'load', file, '--json')
    assert.deepEqual([code, JSON.parse(stdout)], [0, { rates: 3, days: 1, first_day: today, last_day: today }])
    const other = await billing.organization()
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user, { amount: 8, currency_code: 'GBP' })).body
    assert.equal((await shop.report({ order_id }))[0].amount_usd, 12.5, 'of a rate that stands twice the last one')
    assert.match((await run('rates', 'load', file, '--org', other.id)).stdout, /^3 rates of 1 days loaded/)
    const rows = await billing.db.query('select organization_id, count(*) from exchange_rates group by 1 order by 1')
    assert.deepEqual(
      rows,
      [shop.id, other.id].sort().map((organization_id) => ({ organization_id, count: '3' })),
    )
  })

  test('of many days for many organizations, a few thousand rows in a statement, all or none', async () => {
    const count = async () => (await billing.db.query('select count(*) as n from exchange_rates'))[0]!.n
    await billing.db.query(
      `insert into organizations (id, name) select 'many-' || n, 'Many' from generate_series(1, 30) n`,
    )
    const days = Array.from({ length: 1_500 }, (_, n) => new Date(n * 86_400_000).toISOString().slice(0, 10))
    const file = join(folder, 'many.csv')
    await writeFile(file, ['date,currency,per_euro', ...days.map((day) => `${day},USD,1.25`)].join('\n'))
    // The database refuses what a statement must not do; the last organization fails when all others are done.
    await billing.db.query(`
      create function few() returns trigger language plpgsql as $$ begin
        if (select count(*) from written) > 5000 then raise 'too many rows'; end if;
        if exists (select from written where organization_id = 'z-broken') then raise 'broken'; end if;
        return null; end $$`)
    await billing.db.query(`create trigger few after insert on exchange_rates referencing new table as written
      for each statement execute function few()`)
    const before = await count()
    await billing.db.query(`insert into organizations (id, name) values ('z-broken', 'The last')`)
    assert.equal((await run('rates', 'load', file)).code, 1)
    assert.equal(await count(), before, 'all or none')
    await billing.db.query(`delete from organizations where id = 'z-broken'`)
    const { code, stderr } = await run('rates', 'load', file)
    assert.deepEqual([code, stderr], [0, ''])
    const [row] = await billing.db.query(
      `select count(*) as n, count(distinct organization_id) as of from exchange_rates where organization_id like 'many-%'`,
    )
    assert.deepEqual(row, { n: `${30 * 2 * 1_500}`, of: '30' })
    await billing.db.query('drop trigger few on exchange_rates')
    await billing.db.query(`delete from exchange_rates where day < current_date - 1`)
  })

  test('1 and a sentence for what is no file of rates; nothing is loaded', async () => {
    const file = join(folder, 'bad.csv')
    await writeFile(file, 'date,currency,per_euro\n2020-01-01,USD,1\n2020-01-02,USD,x\n')
    const bad = await run('rates', 'load', file)
    assert.deepEqual([bad.code, bad.stdout], [1, ''])
    assert.match(bad.stderr, /bad\.csv:3: "x" is not a rate\.\n$/)
    assert.equal((await run('rates', 'load', join(folder, 'none.csv'))).code, 1)
    assert.equal((await run('rates', 'load', file, '--org', 'nobody')).code, 1)
    assert.deepEqual(await billing.db.query(`select 1 from exchange_rates where day < '2021-01-01'`), [])
  })
})

describe('charges resolve', () => {
  const lost = async () => {
    const user = await shop.customer({ token: 'sim_drop_no_charge' })
    const ask = () => shop.charge(user, { idempotency_key: 'k' })
    return { user, ask, order: (await ask()).body.order_id as string }
  }

  test('ends a charge that no provider can tell about, and keeps why', async () => {
    const { user, ask, order } = await lost()
    await billing.simulator.stop()
    const { code, stdout, stderr } = await run(
      'charges',
      'resolve',
      order,
      '--as',
      'succeeded',
      '--because',
      'bank statement',
    )
    await billing.simulator.start()
    assert.equal(code, 0, stderr)
    assert.equal(stdout, `The order ${order} is succeeded.\n`)
    assert.equal((await ask()).body.checkout_status, 'succeeded')
    assert.equal((await shop.consumables(user)).length, 1)
    const [row] = await billing.db.query('select resolved_because from orders where order_id = $1', [order])
    assert.equal(row!.resolved_because, 'bank statement')
    assert.match((await shop.refund(user, order)).body.message, /refund it at the provider/)
    const again = await run('charges', 'resolve', order, '--as', 'failed', '--because', 'x')
    assert.deepEqual([again.code, again.stderr], [1, `The order ${order} is succeeded already.\n`])
  })

  test('ends a refund, too, which then succeeded or failed', async () => {
    const user = await shop.customer({ token: 'sim_refund_drop' })
    const order = (await shop.charge(user)).body.order_id as string
    const begun = (await shop.refund(user, order)).body
    assert.equal(begun.refund_status, 'processing')
    const id = begun.refund_id as string
    await billing.simulator.stop()
    try {
      const word = (as: string) => run('charges', 'resolve', id, '--as', as, '--because', 'dashboard')
      assert.deepEqual(await word('cancelled'), {
        code: 1,
        stdout: '',
        stderr: 'A refund is never cancelled: it has succeeded or failed.\n',
      })
      const { code, stdout } = await word('succeeded')
      assert.deepEqual([code, stdout], [0, `The refund ${id} is succeeded.\n`])
      assert.deepEqual((await word('failed')).stderr, `The refund ${id} is succeeded already.\n`)
    } finally {
      await billing.simulator.start()
    }
    const [row] = await billing.db.query('select resolved_because from refunds where refund_id = $1', [id])
    assert.equal(row!.resolved_because, 'dashboard')
    const entries = await billing.db.query('select action, target from audit_log order by sequence desc limit 1')
    assert.deepEqual(entries, [{ action: 'order.resolve_asked', target: `refund ${id}` }])
    const [consumable] = await shop.consumables(user)
    assert.equal(consumable.is_active, false)
    assert.deepEqual(
      (await shop.report({ order_id: order })).map(({ status }) => status),
      ['succeeded', 'refunded'],
    )
  })

  test('1 when the provider can tell: its word counts', async () => {
    const { ask, order } = await lost()
    const { code, stderr } = await run('charges', 'resolve', order, '--as', 'succeeded', '--because', 'x')
    assert.deepEqual([code, stderr], [1, `The provider can tell: the order ${order} is cancelled now.\n`])
    assert.equal((await ask()).body.checkout_status, 'cancelled')
  })

  test('1 while its own process is making it', async () => {
    const { order } = await lost()
    await billing.db.query(
      `update orders set lease_until = db_clock() + interval '1 minute', next_look_at = db_clock() + interval '1 minute' where order_id = $1`,
      [order],
    )
    assert.match((await run('charges', 'resolve', order, '--as', 'failed', '--because', 'x')).stderr, /at this moment/)
  })

  test('2 for bad usage, 1 for an unknown order', async () => {
    for (const args of [
      ['x', '--as', 'failed', '--because', 'x'],
      [randomUUID(), '--as', 'done', '--because', 'x'],
      [randomUUID(), '--as', 'failed'],
      [randomUUID(), '--as', 'failed', '--because', ' '],
    ]) {
      assert.equal((await run('charges', 'resolve', ...args)).code, 2, args.join(' '))
    }
    assert.equal((await run('charges', 'resolve', randomUUID(), '--as', 'failed', '--because', 'x')).code, 1)
  })
})

describe('reconcile', () => {
  const all = '2020-01-01T00:00:00Z'

  test('settles what was forgotten, and finds what differs', async () => {
    const other = await billing.organization()
    const good = await other.customer()
    const paid = (await other.charge(good)).body.order_id
    await other.refund(good, paid, { amount: 1, idempotency_key: 'r' })
    const forgotten = await other.customer({ token: 'sim_charge_then_drop' })
    const order = (await other.charge(forgotten, { idempotency_key: 'k' })).body.order_id
    const first = await run('reconcile', '--since', all, '--json')
    const told = JSON.parse(first.stdout)
    assert.equal(told.settled, 1)
    assert.ok(told.match >= 2)
    assert.equal((await other.charge(forgotten, { idempotency_key: 'k' })).body.checkout_status, 'succeeded')

    const gone = (await other.charge(await other.customer())).body.order_id
    const wrong = (await other.charge(await other.customer())).body.order_id
    const never = (await other.charge(await other.customer())).body.order_id
    await billing.db.query('delete from consumables where order_id = $1', [gone])
    await billing.db.query('delete from order_log where order_id = $1', [gone])
    await billing.db.query('delete from orders where order_id = $1', [gone])
    await billing.db.query('update orders set amount = 99 where order_id = $1', [wrong])
    await billing.db.query('update orders set provider_key = $2 where order_id = $1', [never, 'f'.repeat(64)])
    const { code, stdout } = await run('reconcile', '--since', all, '--json')
    assert.equal(code, 1)
    const differences = JSON.parse(stdout).findings.map((one: { difference: string; reference: string }) => [
      one.difference,
      one.reference,
    ])
    for (const expected of [
      ['missing_here', gone],
      ['mismatch', wrong],
      ['missing_here', never],
      ['missing_there', never],
    ]) {
      assert.ok(
        differences.some((one: string[]) => one.join() === expected.join()),
        expected.join(' '),
      )
    }
    assert.ok(!differences.some(([, reference]: string[]) => reference === paid || reference === order))
  })

  test('finds a key that moved money twice, and asks about what moved before the instant', async () => {
    const other = await billing.organization()
    const order = (await other.charge(await other.customer())).body.order_id
    const [row] = await billing.db.query('select provider_key, settled_at from orders where order_id = $1', [order])
    const movement: Movement = {
      type: 'charge',
      key: row!.provider_key!,
      reference: order,
      amountMinor: 1050n,
      currencyCode: 'USD',
      transactionId: 't',
      at: all,
    }
    const looked: string[] = []
    const provider = scriptedProvider({
      async *list() {
        yield movement
        yield { ...movement, transactionId: 'u' }
      },
      async lookUp({ reference }) {
        looked.push(reference)
        return verdict('succeeded')
      },
    })
    const context = {
      ...billing.server.app,
      providers: fixedProviders([provider]),
      log: silent,
      providerTimeoutMs: billing.server.app.config.providerTimeoutMs,
    }
    const { findings } = await reconcile(context, row!.settled_at!)
    assert.deepEqual(
      findings.map(({ difference }) => difference),
      ['duplicate'],
    )
    assert.ok(!looked.includes(order))
  })

  test('0 when all agree; 1 when the provider cannot be asked; 2 for what is no time', async () => {
    const future = new Date(Date.now() + 3_600_000).toISOString()
    assert.equal((await run('reconcile', '--since', future)).code, 0)
    assert.equal((await run('reconcile', '--since', 'yesterday')).code, 2)
    assert.equal((await run('reconcile')).code, 2)
    await billing.simulator.stop()
    const { code, stderr } = await run('reconcile', '--since', all)
    await billing.simulator.start()
    assert.deepEqual([code, /could not be asked/.test(stderr)], [1, true])
  })
})

test('worker: settles what a process that serves without it leaves', async () => {
  const user = await shop.customer({ token: 'sim_charge_then_drop' })
  const ask = () => shop.charge(user, { idempotency_key: 'k' })
  assert.equal((await ask()).body.checkout_status, 'processing')
  const { spawn } = await import('node:child_process')
  const worker = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, '../../src/main.ts'), 'worker'],
    {
      env: { ...PROGRAM_ENV, ...billing.server.env },
    },
  )
  try {
    assert.equal((await settled(ask)).body.checkout_status, 'succeeded')
  } finally {
    worker.kill('SIGTERM')
  }
  const [code] = await new Promise<[number]>((resolve) => worker.on('exit', (given) => resolve([given ?? -1])))
  assert.equal(code, 0)
})
