// Charges at a provider that withholds the result of a known key, authorizes and captures apart, and makes several attempts.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { REFUND } from '../../../src/payments/billing/refund/check.ts'
import { noDetails, type Provider, type Reference, type Traits } from '../../../src/payments/providers/provider.ts'
import { column, columns } from '../../support/rows.ts'
import { contextOf, lookInto, never, setUpCharges } from './in-process.ts'
import { oneStep, scriptedProvider, verdict } from './scripted-provider.ts'

const setup = setUpCharges()

const traits: Traits = {
  ...oneStep,
  keyLifeMs: 'unknown',
  lookUpLagMs: 60_000,
  refuse: 'wait_out',
  refuseRefund: 'wait_out',
}

const charge = (script: Partial<Provider>) =>
  oneOffCharge(setup.context({ traits, refuse: never, ...script }), setup.shop.id, setup.request())
const lookAgain = async (script: Partial<Provider>) =>
  lookInto(setup.context({ traits, refuse: never, charge: never, ...script }), await setup.take())
const as = (reference: Reference, outcome: 'succeeded' | 'failed' = 'succeeded') =>
  verdict(outcome, { reference: reference.reference })
const rows = () =>
  setup.db.query(
    `select status, is_fallback, is_cit, psp_transaction_id, psp_reason_code from report_transactions
     where organization_id = $1 and external_id = $2 and order_id = (select order_id from orders where external_id = $2)
     order by trx_created_at`,
    [setup.shop.id, setup.user],
  )

describe('a key whose result is withheld', () => {
  const withheld = { outcome: 'withheld', handle: 'pay_1' } as const

  test('is looked up by the id that came with it, and is what it was: here succeeded', async () => {
    const asked: Reference[] = []
    const response = await charge({
      charge: async () => withheld,
      lookUp: async (reference) => {
        asked.push(reference)
        return as(reference)
      },
    })
    assert.equal(response.checkout_status, 'succeeded')
    assert.deepEqual(column(asked, 'handle'), ['pay_1'])
  })

  test('is what it was: here failed', async () => {
    const response = await charge({
      charge: async () => withheld,
      lookUp: async (reference) => as(reference, 'failed'),
    })
    assert.equal(response.checkout_status, 'failed')
  })

  test('is neither failed nor sent again while the look-up finds nothing, and settled once it does', async () => {
    let calls = 0
    const response = await charge({
      charge: async () => {
        calls++
        return { outcome: 'withheld' }
      },
      lookUp: async () => ({ outcome: 'not_found' }),
    })
    assert.equal(response.checkout_status, 'processing')
    assert.equal(calls, 1)
    assert.equal((await lookAgain({ lookUp: async (reference) => as(reference) })).status, 'succeeded')
  })
})

test('two negative look-ups count only after the time that a movement may be missing in look-ups', async () => {
  await charge({ charge: async () => ({ outcome: 'unknown', why: 'no response' }) })
  const missing = { lookUp: async () => ({ outcome: 'not_found' }) as const }
  const aged = (age: string) =>
    setup.db.query(
      `update orders set created_at = db_clock() - $2::interval, begun_at = db_clock() - $2::interval,
         not_found_at = db_clock() - interval '4 minutes' where external_id = $1`,
      [setup.user, age],
    )
  await aged('30 seconds')
  assert.equal((await lookAgain(missing)).status, 'processing')
  await aged('5 minutes')
  assert.equal((await lookAgain(missing)).status, 'cancelled')
})

describe('an authorization', () => {
  const authorized = { outcome: 'authorized', handle: 'pay_1' } as const

  test('is captured, and succeeds by the capture', async () => {
    const captured: string[] = []
    const response = await charge({
      charge: async () => authorized,
      capture: async (reference) => {
        captured.push(reference.handle)
        return as(reference)
      },
    })
    assert.equal(response.checkout_status, 'succeeded')
    assert.deepEqual(captured, ['pay_1'])
  })

  test('is no success while the capture is unknown, and is captured by the next look', async () => {
    const response = await charge({
      charge: async () => authorized,
      capture: async () => ({ outcome: 'unknown', why: 'no response' }),
    })
    assert.equal(response.checkout_status, 'processing')
    const settled = await lookAgain({ lookUp: async () => authorized, capture: async (reference) => as(reference) })
    assert.equal(settled.status, 'succeeded')
  })

  test('that stays authorized is looked at again', async () => {
    const response = await charge({ charge: async () => authorized, capture: async () => authorized })
    assert.equal(response.checkout_status, 'processing')
  })

  test('whose capture is refused for good is cancelled', async () => {
    const response = await charge({ charge: async () => authorized, capture: async () => ({ outcome: 'refused' }) })
    assert.equal(response.checkout_status, 'cancelled')
  })
})

describe('attempts inside one payment', () => {
  const attempt = (code: string, isFallback: boolean) => ({
    isFallback,
    details: { ...noDetails, psp_transaction_id: `at_${code}`, psp_reason_code: code },
  })

  test('each is a row of the report, in their order; the success is the last', async () => {
    await charge({
      charge: async (reference) => ({
        ...as(reference),
        isCit: true,
        isFallback: true,
        failedAttempts: [attempt('do_not_honor', false), attempt('declined', true)],
      }),
    })
    assert.deepEqual(await rows(), [
      {
        status: 'failed',
        is_fallback: 'f',
        is_cit: 't',
        psp_transaction_id: 'at_do_not_honor',
        psp_reason_code: 'do_not_honor',
      },
      {
        status: 'failed',
        is_fallback: 't',
        is_cit: 't',
        psp_transaction_id: 'at_declined',
        psp_reason_code: 'declined',
      },
      { status: 'succeeded', is_fallback: 't', is_cit: 't', psp_transaction_id: 'there-1', psp_reason_code: null },
    ])
  })

  test('without attempts there is one row, and no fallback', async () => {
    await charge({ charge: async (reference) => as(reference) })
    assert.deepEqual(columns(await rows(), 'status', 'is_fallback', 'is_cit'), [['succeeded', 'f', 'f']])
  })
})

describe('a refund that was never sent, where the life of keys is unknown', () => {
  async function unsent() {
    const { order_id } = (await setup.shop.charge(setup.user)).body
    const id = randomUUID()
    await setup.db.query(
      `insert into refunds (organization_id, refund_id, order_id, external_id, amount, amount_given, currency_code,
         provider_key, created_at, next_look_at, is_unsent)
       values ($1, $2::uuid, $3, $4, 4, true, 'USD', $2::uuid::text, db_clock() - interval '2 days', db_clock(), true)`,
      [setup.shop.id, id, order_id, setup.user],
    )
    return id
  }
  const lookAt = async (id: string, script: Partial<Provider>) => {
    const provider = scriptedProvider({ traits, refuseRefund: undefined as never, ...script })
    const found = await REFUND.rows.find(setup.db.query, id)
    const taken = (await REFUND.rows.take(setup.db, found!, 60_000))!
    return (await checkStatus(contextOf(setup.db, provider), REFUND, taken)).status
  }
  const paidBack = (reference: Reference) => verdict('succeeded', { reference: reference.reference, amountMinor: 400n })

  test('is looked up first, and sent if it is not there', async () => {
    const calls: string[] = []
    const status = await lookAt(await unsent(), {
      lookUpRefund: async () => {
        calls.push('look_up')
        return { outcome: 'not_found' }
      },
      refund: async (request) => {
        calls.push('refund')
        return paidBack(request)
      },
    })
    assert.equal(status, 'succeeded')
    assert.deepEqual(calls, ['look_up', 'refund'])
  })

  test('is not sent if it is there', async () => {
    const status = await lookAt(await unsent(), { lookUpRefund: async (one) => paidBack(one), refund: never })
    assert.equal(status, 'succeeded')
  })

  test('whose key is known there is looked up, once', async () => {
    let found = 0
    const status = await lookAt(await unsent(), {
      lookUpRefund: async (one) => (found++ === 0 ? { outcome: 'not_found' } : paidBack(one)),
      refund: async () => ({ outcome: 'withheld' }),
    })
    assert.equal(status, 'succeeded')
    assert.equal(found, 2)
  })
})
