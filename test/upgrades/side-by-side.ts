// What operators and callers do while programs of two versions serve one database: credits, caps, a closed month, an alert.
import assert from 'node:assert/strict'
import { startReceiver } from '../support/receiver.ts'
import type { Json } from '../support/server.ts'
import { until } from '../support/time.ts'

interface Programs {
  /** The base URLs of the older and the newer program. */
  old: string
  new: string
  /** Runs a command of the newer program; its output. */
  command(...words: string[]): Promise<string>
  /** Imports lines by the older program. */
  importByOld(lines: object[]): Promise<unknown>
  organizationKey: string
  projectKey: string
}

/** A customer with a saved card, whom nothing else charges. */
export const CUSTOMER = 'beside'
let made = 0

/** Returns the orders that were charged. */
export async function useSideBySide(programs: Programs): Promise<string[]> {
  const orders = [...(await useCredits(programs)), ...(await reachCap(programs))]
  await closeMonth(programs)
  return orders
}

const post = async ({ organizationKey }: Programs, url: string, path: string, body: object) => {
  const response = await fetch(`${url}/acme/v1/${path}`, {
    method: 'POST',
    headers: { 'service-secret-key': organizationKey, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Json }
}

async function useCredits(programs: Programs): Promise<string[]> {
  const { old, new: newer, command } = programs
  await command('credits', 'unit', 'create', 'tokens', '--org', 'acme')
  const call = async (url: string, path: string, body: object): Promise<Json> => {
    const sent = { external_id: CUSTOMER, unit: 'tokens', idempotency_key: `credits-${++made}`, ...body }
    const { status, body: result } = await post(programs, url, path, sent)
    assert.equal(status, 200, `${path}: ${JSON.stringify(result)}`)
    return result
  }
  const orders: string[] = []
  for (const [url, other] of [
    [old, newer],
    [newer, old],
  ] as const) {
    await call(url, 'credits/grant', { amount: 100 })
    const spent = { amount: 30, idempotency_key: `credits-${++made}` }
    const { entry_id } = await call(url, 'credits/spend', spent)
    const again = await call(other, 'credits/spend', spent)
    assert.deepEqual([again.entry_id, again.idempotent_replay], [entry_id, true])
    const { hold_id } = await call(url, 'credits/hold', { amount: 20 })
    const captured = { hold_id, amount: 5, external_id: undefined, unit: undefined }
    await call(other, 'credits/capture', captured)
    const charge = { amount: '2.00', currency_code: 'USD', grants: [{ unit: 'tokens', amount: 7 }], unit: undefined }
    const { checkout_status, order_id } = await call(url, 'payment/one_off_charge', charge)
    assert.equal(checkout_status, 'succeeded')
    orders.push(order_id)
  }
  for (const url of [old, newer]) {
    const { balances } = (await post(programs, url, 'credits/balance', { external_id: CUSTOMER })).body
    assert.deepEqual([balances[0].balance, balances[0].held], [2 * (100 - 30 - 5 + 7), 0])
  }
  await assertExported(programs)
  return orders
}

// A grant, a spend, a capture and the grant of a charge by each program.
const ENTRIES = 8

/** A sync gets all entries, whichever program wrote them. */
const assertExported = ({ new: newer, projectKey }: Programs) =>
  until('the entries of credits in the export', async () => {
    const response = await fetch(`${newer}/public/v1/export`, { headers: { 'Service-Secret': projectKey } })
    return (await response.text()).split('\n').filter((line) => line.includes('"credit_entry"')).length === ENTRIES
  })

/** Charges that one program counted are in the cap of the other. */
async function reachCap(programs: Programs): Promise<string[]> {
  const { old, new: newer, command } = programs
  await command(
    'credits',
    'cap',
    'set',
    '--org',
    'acme',
    '--scope',
    'customer',
    '--per',
    'day',
    '--currency-code',
    'EUR',
    '--most',
    '2',
  )
  const results: unknown[] = []
  const orders: string[] = []
  for (const url of [old, newer, old, newer]) {
    const asked = { external_id: CUSTOMER, amount: '1.00', currency_code: 'EUR', idempotency_key: `cap-${++made}` }
    const { status, body } = await post(programs, url, 'payment/one_off_charge', asked)
    results.push(body.checkout_status ?? status)
    if (status === 200) orders.push(body.order_id)
  }
  assert.deepEqual(results, ['succeeded', 'succeeded', 400, 400])
  return orders
}

/** What the older program imports into a month that the newer one closed is a correction. */
async function closeMonth({ command, importByOld }: Programs): Promise<void> {
  const report = async (month: string): Promise<Json> =>
    JSON.parse(await command('report', '--org', 'acme', '--month', month, '--json'))
  const sums = async (month: string) =>
    (await report(month)).currencies.find((one: Json) => one.currency_code === 'USD')
  await command('finance', 'close', '--month', '2026-01', '--org', 'acme', '--yes')
  const closed = await report('2026-01')
  const at = '2026-01-20T12:00:00Z'
  await importByOld([
    {
      record: 'payment',
      data: {
        ...{ external_id: CUSTOMER, order_id: '01900000-0000-7000-8000-000000009001', amount: 5, currency_code: 'USD' },
        ...{ trx_id: '01900000-0000-7000-8000-000000009002', trx_created_at: at, psp_date: at, status: 'succeeded' },
        ...{ psp: 'simulator', psp_merchant_id: 'main', psp_transaction_type: 'sale' },
      },
    },
  ])
  assert.deepEqual(await report('2026-01'), closed)
  assert.ok((await sums('2026-01')).gross > 0)
  const { gross, corrected } = await sums('2026-02')
  assert.deepEqual([gross, corrected], [0, 5])
}

/** An alert about a day that is over is sent once, by the program that knows alerts. */
export async function awaitAlert(command: Programs['command']): Promise<void> {
  const receiver = await startReceiver()
  try {
    await command(
      'alert',
      'destination',
      'set',
      'team',
      '--project',
      'shop',
      '--kind',
      'webhook',
      '--address',
      receiver.url,
    )
    const rule = ['--metric', 'sessions', '--condition', 'below', '--threshold', '1000000']
    await command('alert', 'set', 'low', '--project', 'shop', ...rule)
    await until('the alert', async () => receiver.arrivals.length > 0)
    assert.deepEqual(
      receiver.arrivals.map(({ body }) => JSON.parse(body).type),
      ['alert.rule'],
    )
  } finally {
    await receiver.close()
  }
}
