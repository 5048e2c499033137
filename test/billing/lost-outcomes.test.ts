// What a charge does when the provider, the database or the process itself fails at the worst moment.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { oneOffCharge } from '../../src/billing/charge/charge.ts'
import { type Order, ordersInProgress } from '../../src/billing/charge/orders.ts'
import type { ChargeRequest } from '../../src/billing/charge/request.ts'
import type { BillingContext } from '../../src/billing/context.ts'
import { CHARGE, look } from '../../src/billing/unknown/look.ts'
import { reconcile } from '../../src/billing/unknown/reconcile.ts'
import { findEither, resolve } from '../../src/billing/unknown/resolve.ts'
import { ApiError } from '../../src/lib/errors.ts'
import { readAmount } from '../../src/lib/money.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { fixedProviders } from '../support/fixed-providers.ts'
import { HandClock } from '../support/hand-clock.ts'
import { untilLocked } from '../support/locks.ts'
import { scriptedProvider, unheard, verdict } from '../support/scripted-provider.ts'
import { silent } from '../support/simulator.ts'

let billing: Billing
let shop: Organization
let user: string
before(async () => {
  // Nobody settles but the test.
  billing = await startBilling({}, { worker: false })
  shop = await billing.organization()
})
beforeEach(async () => {
  // What earlier tests left in progress is nobody's business here.
  await billing.db.query(`update orders set next_look_at = db_clock() + interval '1 day' where status = 'processing'`)
  user = await shop.customer()
})
after(() => billing.stop())

const request = (amount = '10.50', currencyCode = 'USD'): ChargeRequest => ({
  externalId: user,
  idempotencyKey: 'k',
  amount: readAmount(amount),
  amountSent: amount,
  currencyCode,
  clientMetadata: null,
})

function context(script: Partial<Provider>, more: Partial<BillingContext> = {}): BillingContext {
  const providers = fixedProviders([scriptedProvider(script)])
  return { db: billing.db, providers, clock: new HandClock(), log: silent, providerTimeoutMs: 1_000, ...more }
}

const order = async () =>
  (
    await billing.db.query(
      `select order_id, status, lease_until, amount, looks, round(extract(epoch from next_look_at - db_clock())) as due_in
       from orders where organization_id = $1 and external_id = $2`,
      [shop.id, user],
    )
  )[0]

const takeDue = (db: Db, most: number, leaseMs: number) =>
  ordersInProgress.takeDue(db, { most, perAccount: most, accounts: [] }, leaseMs)
const lookIntoCharge = (at: BillingContext, order: Order) => look(at, CHARGE, order)

const never = async (): Promise<never> => {
  throw new Error('must not be called')
}

describe('nothing is begun', () => {
  test('503 while the circuit is open, and the key stays free', async () => {
    const closed = context({ admits: () => false, charge: never })
    await assert.rejects(oneOffCharge(closed, shop.id, request()), (error) => {
      assert.ok(error instanceof ApiError)
      assert.deepEqual([error.status, error.headers['retry-after']], [503, '5'])
      return true
    })
    assert.equal(await order(), undefined)
  })

  test('the trial of an open circuit is not spent on a request that breaks a rule', async () => {
    let asked = 0
    const counting = context({ circuitIsOpen: () => true, admits: () => ++asked > 0, charge: never })
    await assert.rejects(oneOffCharge(counting, shop.id, request('0')))
    assert.equal(asked, 0)
  })

  test('nor on a customer who has a charge in progress', async () => {
    await oneOffCharge(context({}), shop.id, request())
    let asked = 0
    const counting = context({ circuitIsOpen: () => true, admits: () => ++asked > 0, charge: never })
    const another = { ...request(), idempotencyKey: randomUUID() }
    await assert.rejects(oneOffCharge(counting, shop.id, another), { status: 503 })
    assert.equal(asked, 0)
  })
})

describe('an unknown outcome', () => {
  test('is handed over at once, and looked at after 1 s, 5 s, 15 s, 1 min, 5 min, then every 15 min', async () => {
    const lost = context({})
    const answer = await oneOffCharge(lost, shop.id, request())
    assert.equal(answer.checkout_status, 'processing')
    const pauses: number[] = []
    for (let look = 0; look < 8; look++) {
      const { due_in, lease_until } = (await order())!
      assert.equal(lease_until, null)
      pauses.push(Number(due_in))
      await lookIntoCharge(lost, (await takeAnyway())!)
    }
    assert.deepEqual(pauses, [1, 5, 15, 60, 300, 900, 900, 900])
  })

  test('an exception of the adapter is unknown, too', async () => {
    const buggy = context({
      charge: async () => {
        throw new TypeError('a bug')
      },
    })
    assert.equal((await oneOffCharge(buggy, shop.id, request())).checkout_status, 'processing')
    assert.equal((await order())!.status, 'processing')
  })

  test('never seen by the provider: refused first, and only when it agrees cancelled', async () => {
    await oneOffCharge(context({}), shop.id, request())
    const calls: string[] = []
    const take = async () => (await takeAnyway())!
    const notYet = context({
      async lookUp() {
        calls.push('lookUp')
        return { outcome: 'not_found' }
      },
      async refuse() {
        calls.push('refuse')
        return unheard
      },
    })
    assert.equal((await lookIntoCharge(notYet, await take())).status, 'processing')
    assert.equal((await order())!.status, 'processing')
    const agreed = context({
      lookUp: async () => ({ outcome: 'not_found' }),
      refuse: async () => ({ outcome: 'refused' }),
    })
    assert.equal((await lookIntoCharge(agreed, await take())).status, 'cancelled')
    assert.deepEqual(calls, ['lookUp', 'refuse'])
  })

  test('charged before the refusal arrived: succeeded', async () => {
    await oneOffCharge(context({}), shop.id, request())
    const late = context({ lookUp: async () => ({ outcome: 'not_found' }), refuse: async () => verdict('succeeded') })
    assert.equal((await lookIntoCharge(late, (await takeAnyway())!)).status, 'succeeded')
    assert.equal((await shop.consumables(user)).length, 1)
  })
})

const takeAnyway = async () => {
  await billing.db.query(
    'update orders set next_look_at = db_clock(), lease_until = null where external_id = $1 and status = $2',
    [user, 'processing'],
  )
  return (await takeDue(billing.db, 1, 5_000))[0]
}

describe('leases', () => {
  test('nobody else takes the order while its own process is making the charge', async () => {
    const busy = context({
      charge: async () => {
        await billing.db.query(`update orders set next_look_at = db_clock() where external_id = $1`, [user])
        assert.deepEqual(await takeDue(billing.db, 100, 5_000), [])
        return verdict('succeeded')
      },
    })
    assert.equal((await oneOffCharge(busy, shop.id, request())).checkout_status, 'succeeded')
  })

  test('a process that came too late to its own lease does not call the provider', async () => {
    const clock = new HandClock()
    // Every statement takes as long as the margin of the lease, the claim too.
    const db: Db = {
      ...billing.db,
      query: ((...given) => {
        clock.advance(1_000)
        return billing.db.query(...given)
      }) as Db['query'],
    }
    const slow = context({ charge: never }, { db, clock })
    assert.equal((await oneOffCharge(slow, shop.id, request())).checkout_status, 'processing')
    assert.deepEqual([(await order())!.lease_until, (await order())!.due_in], [null, '1'])
  })

  test('a charge that waited long for its turn has all of its lease before it', async () => {
    const clock = new HandClock()
    const patient = context({ charge: async () => verdict('succeeded') }, { clock })
    const second = await shop.customer()
    const charges: Promise<unknown>[] = []
    await billing.db.tx(async (query) => {
      await query('select 1 from organization_clocks where organization_id = $1 for update', [shop.id])
      charges.push(oneOffCharge(patient, shop.id, request()))
      await untilLocked(billing.db.query)
      charges.push(oneOffCharge(patient, shop.id, { ...request(), externalId: second }))
      // Many times the margin of the lease.
      clock.advance(60_000)
    })
    const answers = (await Promise.all(charges)) as { checkout_status: string }[]
    assert.deepEqual(
      answers.map(({ checkout_status }) => checkout_status),
      ['succeeded', 'succeeded'],
    )
  })

  test('a lost process: the order is taken when the lease has passed, by one process', async () => {
    const db: Db = {
      ...billing.db,
      tx: never,
      query: (async (statement, params) => {
        const { name } = statement as { name?: string }
        if (name === 'hand over order') throw new Error('Connection terminated')
        return billing.db.query(statement, params)
      }) as Db['query'],
    }
    await oneOffCharge(context({}, { db }), shop.id, request())
    const lost = (await order())!
    assert.deepEqual([lost.status, lost.due_in], ['processing', '2'], 'deadline and margin')
    assert.deepEqual(await takeDue(billing.db, 100, 5_000), [])
    await billing.db.query(
      `update orders set lease_until = db_clock(), next_look_at = db_clock() where external_id = $1`,
      [user],
    )
    const taken = await Promise.all([1, 2, 3, 4].map(() => takeDue(billing.db, 100, 5_000)))
    assert.deepEqual(
      taken.flat().map(({ order_id }) => order_id),
      [lost.order_id],
    )
    await lookIntoCharge(context({ lookUp: async () => verdict('succeeded') }), taken.flat()[0]!)
  })

  test('whoever lost the order to another does not move its next look', async () => {
    await oneOffCharge(context({}), shop.id, request())
    const first = (await takeAnyway())!
    await takeAnyway()
    await lookIntoCharge(context({}), first)
    assert.deepEqual([(await order())!.due_in, (await order())!.looks], ['5', '2'], 'its lease still stands')
    assert.notEqual((await order())!.lease_until, null)
  })
})

describe('the database is lost after the provider was called', () => {
  test('200 processing, never failed; then the truth', async () => {
    const db: Db = {
      ...billing.db,
      tx: async () => {
        throw Object.assign(new Error('Connection terminated unexpectedly'), {})
      },
    }
    const charged = context({ charge: async () => verdict('failed') }, { db })
    assert.equal((await oneOffCharge(charged, shop.id, request())).checkout_status, 'processing')
    const told = context({ lookUp: async () => verdict('succeeded') })
    assert.equal((await lookIntoCharge(told, (await takeAnyway())!)).status, 'succeeded')
  })

  test('the commit was heard by nobody: the replay tells the truth', async () => {
    const db: Db = {
      ...billing.db,
      tx: async (work) => {
        await billing.db.tx(work)
        throw new Error('Connection terminated unexpectedly')
      },
    }
    const charged = context({ charge: async () => verdict('succeeded') }, { db })
    assert.equal((await oneOffCharge(charged, shop.id, request())).checkout_status, 'processing')
    assert.equal((await oneOffCharge(context({ charge: never }), shop.id, request())).checkout_status, 'succeeded')
    assert.equal((await shop.consumables(user)).length, 1)
  })
})

describe('settling', () => {
  test('twice changes nothing, whatever the second verdict', async () => {
    await oneOffCharge(context({}), shop.id, request())
    const [one, two] = [(await takeAnyway())!, (await takeAnyway())!]
    const yes = context({ lookUp: async () => verdict('succeeded') })
    const no = context({ lookUp: async () => ({ outcome: 'refused' }) })
    const [first, second] = await Promise.all([lookIntoCharge(yes, one), lookIntoCharge(yes, two)])
    assert.deepEqual([first.status, second.status], ['succeeded', 'succeeded'])
    assert.equal((await lookIntoCharge(no, one)).status, 'succeeded', 'a refused reference reads the order’s state')
    assert.equal((await shop.consumables(user)).length, 1)
    assert.equal((await shop.report({ order_id: one.order_id })).length, 1)
    const events = await billing.db.query(`select type from events where object_id = $1`, [one.order_id])
    assert.equal(events.length, 1)
  })

  test('a reference refused by another process while the charge was on its way: cancelled, not failed', async () => {
    const refused = context({ charge: async () => ({ outcome: 'refused' }) })
    const answer = await oneOffCharge(refused, shop.id, request())
    assert.deepEqual([answer.checkout_status, answer.failed_message_for_user], ['cancelled', ''])
    assert.deepEqual(await shop.report({ order_id: answer.order_id }), [])
  })

  test('fields of the provider that fit no column are left out, for money has moved', async () => {
    const details = {
      ...verdict('succeeded').details,
      psp_date: 'yesterday',
      pm_data_first6: '42424242',
      network: 'a\0b',
    }
    const odd = context({ charge: async () => verdict('succeeded', { details }) })
    const { order_id } = await oneOffCharge(odd, shop.id, request())
    const [row] = await shop.report({ order_id })
    assert.deepEqual([row.status, row.psp_date, row.pm_data_first6, row.network], ['succeeded', null, null, null])
  })
})

describe('a verdict that cannot be settled by', () => {
  // More than a transaction of the data API can hold: the adapter should not have let it pass.
  const absurd = verdict('succeeded', { amountMinor: 10n ** 24n })
  const told = () => context({ lookUp: async () => absurd })
  const begin = async () => {
    await billing.db.query(
      `insert into profiles (project_id, id, created_at, updated_at) values ($1, $2, db_clock(), db_clock())`,
      [shop.projectId, user],
    )
    await billing.db.query('update customers set profile_id = external_id where external_id = $1', [user])
    await oneOffCharge(context({}), shop.id, request())
    await billing.db.query('update orders set next_look_at = db_clock() where external_id = $1', [user])
  }

  test('is looked at again after a pause that grows, in nobody’s hands meanwhile', async () => {
    await begin()
    await assert.rejects(lookIntoCharge(told(), (await takeAnyway())!))
    const { status, lease_until, due_in } = (await order())!
    assert.deepEqual([status, lease_until, due_in], ['processing', null, '5'])
  })

  test('leaves the word to the operator', async () => {
    await begin()
    const { order_id } = (await order())!
    await resolve(told(), await findEither(billing.db, order_id!), 'succeeded', 'bank statement')
    assert.deepEqual([(await order())!.status, (await order())!.amount], ['succeeded', '10.50'])
    assert.equal((await shop.consumables(user)).length, 1)
  })

  test('is a finding of the reconciliation, which goes on', async () => {
    await begin()
    const odd = (await order())!.order_id!
    const [fine, key] = [await shop.customer(), randomUUID()]
    await oneOffCharge(context({}), shop.id, { ...request(), externalId: fine, idempotencyKey: key })
    const rows = await billing.db.query<{ order_id: string; provider_key: string }>(
      `select order_id, provider_key from orders where order_id = $1 or idempotency_key = $2 order by order_id <> $1`,
      [odd, key],
    )
    const movements = rows.map(({ order_id, provider_key }) => ({
      ...{ type: 'charge' as const, key: provider_key, reference: order_id, amountMinor: 1050n, currencyCode: 'USD' },
      ...{ transactionId: 'there-1', at: '2026-01-01T00:00:00Z' },
    }))
    const both = context({
      lookUp: async ({ reference }) => (reference === odd ? absurd : verdict('succeeded')),
      async *list() {
        yield* movements
      },
    })
    const { findings, settled, in_progress } = await reconcile(both, '2100-01-01T00:00:00Z')
    assert.deepEqual(
      findings.map(({ difference, reference, what }) => [difference, reference, what]),
      [['mismatch', odd, '1050 minor units of USD there, which cannot be settled here']],
    )
    assert.deepEqual([settled, in_progress], [1, 0])
    const silent = { ...both, providers: context({ list: [...both.providers.opened()][0]!.list }).providers }
    const again = await reconcile(silent, '2100-01-01T00:00:00Z')
    assert.deepEqual(
      again.findings.map(({ difference, reference, what }) => [difference, reference, what]),
      [['mismatch', odd, '1050 minor units of USD there, of which nothing certain can be heard']],
    )
    assert.deepEqual([again.match, again.in_progress], [1, 0])
  })

  test('but not what others, writing the same, kept from being settled', async () => {
    await oneOffCharge(context({}), shop.id, request())
    const { order_id } = (await order())!
    const known = context({ lookUp: async () => verdict('succeeded') })
    let clashes = 1
    const tx: typeof billing.db.tx = async (work) => {
      if (clashes-- > 0) throw Object.assign(new Error('deadlock detected'), { code: '40P01' })
      return billing.db.tx(work)
    }
    const found = await findEither(billing.db, order_id!)
    await assert.rejects(resolve({ ...known, db: { ...billing.db, tx } }, found, 'cancelled', 'a guess'), /deadlock/)
    await assert.rejects(resolve(known, found, 'cancelled', 'a guess'), /The provider can tell: .* is succeeded now/)
  })
})

describe('after a restored backup the provider knows the key', () => {
  test('with the same amount: its outcome is told, nothing is charged again', async () => {
    const known = context({ charge: async () => verdict('succeeded', { reference: 'order-before-the-backup' }) })
    assert.equal((await oneOffCharge(known, shop.id, request())).checkout_status, 'succeeded')
    assert.equal((await shop.consumables(user)).length, 1)
  })

  test('with another amount: idempotency_key_reused, and the order is what was charged', async () => {
    const known = context({ charge: async () => ({ outcome: 'conflict' }), lookUp: async () => verdict('succeeded') })
    await assert.rejects(oneOffCharge(known, shop.id, request('99')), (error) => {
      assert.deepEqual((error as ApiError).extra, { code: 'idempotency_key_reused' })
      return true
    })
    assert.deepEqual([(await order())!.status, (await order())!.amount], ['succeeded', '10.50'])
    const replay = await oneOffCharge(context({ charge: never }), shop.id, request('10.5'))
    assert.deepEqual([replay.checkout_status, replay.idempotent_replay], ['succeeded', true])
  })

  test('the key follows from organization, external_id and idempotency_key alone', async () => {
    const keys: string[] = []
    const record = context({
      async charge({ key }) {
        keys.push(key)
        return verdict('succeeded')
      },
    })
    await oneOffCharge(record, shop.id, request())
    await billing.db.query('delete from consumables where external_id = $1', [user])
    await billing.db.query('delete from orders where external_id = $1', [user])
    await oneOffCharge(record, shop.id, request())
    assert.match(keys[0]!, /^[0-9a-f]{64}$/)
    assert.equal(keys[0], keys[1])
  })
})
