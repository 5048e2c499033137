// The simulator over HTTP: what its tokens do, what its ledger lists, what it turns away.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { openSimulator } from '../support/simulators.ts'
import { until } from '../support/time.ts'

interface Body {
  outcome: string
  message: string
  details: Record<string, string>
}

const simulator = await openSimulator()
after(() => simulator.cleanUp())

test('sim_error_500_then_ok: 500 and no trace, then a charge', async () => {
  const body = charge('sim_error_500_then_ok')
  assert.equal((await post('/charges', body)).status, 500)
  assert.equal((await get(`/charges/${body.key}`)).status, 404)
  assert.equal((await post('/charges', body)).status, 200)
  assert.equal((await get(`/charges/${body.key}`)).body.outcome, 'succeeded')
})

test('sim_error_500_then_ok: refused after the 500 it is never charged', async () => {
  const body = charge('sim_error_500_then_ok')
  await post('/charges', body)
  assert.deepEqual((await post(`/charges/${body.key}/refuse`)).body, { outcome: 'refused' })
  assert.deepEqual((await post('/charges', body)).body, { outcome: 'refused' })
})

test('sim_charge_then_500: 500, and charged', async () => {
  const body = charge('sim_charge_then_500')
  assert.equal((await post('/charges', body)).status, 500)
  assert.equal((await get(`/charges/${body.key}`)).body.outcome, 'succeeded')
})

test('sim_slow_1500ms: charged at once, response after that long, a second time without waiting', async () => {
  // On a busy machine the response may come before the test sees the charge: then it looks once more.
  await until('the charge before its response', async () => {
    const body = charge('sim_slow_1500ms')
    const begun = performance.now()
    let hasCome = false
    const response = post('/charges', body).finally(() => {
      hasCome = true
    })
    await until('the charge', async () => (await get(`/charges/${body.key}`)).status === 200)
    const isFirst = !hasCome
    assert.equal((await response).body.outcome, 'succeeded')
    assert.ok(performance.now() - begun >= 1499)
    const again = performance.now()
    assert.deepEqual((await post('/charges', body)).body, (await response).body)
    return isFirst && performance.now() - again < 1499
  })
})

test('refund tokens: the charge is good, the refund goes as the token says', async () => {
  const refund = async (token: string) => {
    const { details } = (await post('/charges', charge(token))).body
    const { token: _card, ...body } = charge('')
    return { ...body, amount_minor: '1', charge_transaction_id: details.psp_transaction_id }
  }
  const fails = await post('/refunds', await refund('sim_refund_fails'))
  assert.equal(fails.body.outcome, 'failed')
  assert.equal(fails.body.details.psp_reason_code, 'refund_declined')
  const hidden = await refund('sim_refund_then_500')
  assert.equal((await post('/refunds', hidden)).status, 500)
  assert.equal((await get(`/refunds/${hidden.key}`)).body.outcome, 'succeeded')
  const second = await refund('sim_refund_error_500_then_ok')
  assert.equal((await post('/refunds', second)).status, 500)
  assert.equal((await post('/refunds', second)).body.outcome, 'succeeded')
  const later = await refund('sim_refund_late_900000ms')
  await assert.rejects(post('/refunds', later))
  assert.equal((await get(`/refunds/${later.key}`)).status, 404)
  const late = await refund('sim_refund_late_100ms')
  await assert.rejects(post('/refunds', late))
  await until('the refund', async () => (await get(`/refunds/${late.key}`)).body.outcome === 'succeeded')
})

test('the ledger lists movements of money in major units, with all their places', async () => {
  const since = new Date().toISOString()
  for (const [currency_code, amount_minor] of [
    ['USD', '1050'],
    ['JPY', '500'],
    ['KWD', '5'],
    ['USD', '12345678901234567890'],
  ]) {
    await post('/charges', { ...charge('pm_card_visa'), currency_code, amount_minor, reference: 'shown' })
  }
  await post('/charges', charge('pm_card_chargeDeclined'))
  const text = await (await fetch(`${simulator.url}/ledger?since=${since}`)).text()
  assert.deepEqual(text.match(/"amount":[^,]+/g), [
    '"amount":10.50',
    '"amount":500',
    '"amount":0.005',
    '"amount":123456789012345678.90',
  ])
  const [first] = JSON.parse(text)
  assert.equal(first.reference, 'shown')
  assert.equal(first.type, 'charge')
  assert.equal(first.currency_code, 'USD')
  assert.equal(first.token, 'pm_card_visa')
  assert.match(first.at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
})

test('an empty ledger is an empty list; since takes any offset; nonsense is 400', async () => {
  assert.deepEqual((await get('/ledger?since=2999-01-01T00:00:00Z')).body, [])
  const future = new Date(Date.now() + 3_600_000).toISOString().replace('Z', '%2B01:00')
  const past = new Date(Date.now() + 3_600_000 - 60_000).toISOString().replace('Z', '%2B01:00')
  assert.deepEqual((await get(`/ledger?since=${future}`)).body, [])
  assert.ok((await get<unknown[]>(`/ledger?since=${past}`)).body.length > 0)
  assert.equal((await get('/ledger?since=yesterday')).status, 400)
  assert.equal((await get('/ledger?from=2026-01-01')).status, 400)
})

const wrong: [string, object][] = [
  ['no amount', { amount_minor: undefined }],
  ['an amount of nothing', { amount_minor: '0' }],
  ['an amount that is a number', { amount_minor: 5 }],
  ['a currency in small letters', { currency_code: 'usd' }],
  ['a currency nobody knows', { currency_code: 'XXX' }],
  ['a field nobody knows', { colour: 'red' }],
  ['a key with a slash', { key: 'a/b' }],
]
for (const [name, part] of wrong) {
  test(`400 for a charge with ${name}`, async () => {
    const response = await post('/charges', { ...charge('pm_card_visa'), ...part })
    assert.equal(response.status, 400)
    assert.equal(typeof response.body.message, 'string')
  })
}

function charge(token: string) {
  return {
    key: randomUUID(),
    reference: randomUUID(),
    amount_minor: '1050',
    currency_code: 'USD',
    merchant_id: 'merchant-1',
    region: null,
    token,
  }
}

async function get<T = Body>(path: string) {
  const response = await fetch(simulator.url + path)
  return { status: response.status, body: (await response.json()) as T }
}

async function post(path: string, body?: object) {
  const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(simulator.url + path, { method: 'POST', ...json })
  return { status: response.status, body: (await response.json()) as Body }
}
