// Races over HTTP: two server processes on one database, hundreds of requests at once, and the ledger as the referee.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { Agent } from 'node:http'
import { after, describe, test } from 'node:test'
import { settled, startBilling } from '../../support/billing.ts'
import { spawnTundish } from '../../support/cli.ts'
import { type ApiResponse, send } from '../../support/server.ts'

// One connection a request: nothing may wait in line behind another.
const agent = new Agent({ keepAlive: true, maxSockets: 200 })
const billing = await startBilling({ PROVIDER_TIMEOUT_MS: '20000', DATABASE_CONNECTIONS: '12' })
const shop = await billing.organization()
const other = await serve(billing.server.env)
after(async () => {
  agent.destroy()
  await other.stop()
  await billing.stop()
})

/** The program itself, serving the same database. */
async function serve(env: Record<string, string>): Promise<{ url: string; stop(): Promise<void> }> {
  const server: ChildProcess = spawnTundish(['serve'], env, ['ignore', 'pipe', 'inherit'])
  const url = await new Promise<string>((resolve, reject) => {
    server.on('exit', (code) => reject(new Error(`serve ended with ${code}`)))
    server.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const [, found] = /"url":"([^"]+)"/.exec(text) ?? []
      if (found) resolve(found)
    })
  })
  return {
    url,
    stop: () =>
      new Promise((resolve) => {
        server.removeAllListeners('exit').on('exit', () => resolve())
        server.kill('SIGTERM')
      }),
  }
}

/** The n-th of many requests: every other one goes to the other process. */
async function post(n: number, path: string, body: object): Promise<ApiResponse> {
  const url = n % 2 === 0 ? billing.server.url : other.url
  const headers = ['service-secret-key', shop.key]
  for (;;) {
    const response = await send(agent, url, `/${shop.id}/v1${path}`, { method: 'POST', body, headers })
    // Nothing is begun for one that gets no connection to the database in time, on a busy machine: it is sent again.
    if (response.headers['x-error-code'] !== 'database_unavailable') return response
  }
}

const charge = (n: number, external_id: string, idempotency_key: string) =>
  post(n, '/payment/one_off_charge', { external_id, amount: 10, currency_code: 'USD', idempotency_key })

const many = <T>(count: number, one: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, n) => one(n)))

describe('200 requests with one key', () => {
  for (const token of ['pm_card_visa', 'sim_slow_300ms', 'pm_card_chargeDeclined', 'sim_charge_then_drop']) {
    test(`${token}: one charge, and all responses have the same outcome`, async () => {
      const user = await shop.customer({ token })
      const responses = await many(200, (n) => charge(n, user, 'k'))
      assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200])
      assert.equal(new Set(responses.map(({ body }) => body.order_id)).size, 1)
      assert.equal(responses.filter(({ body }) => !body.idempotent_replay).length, 1, 'one of them was not a replay')
      const last = (await settled(() => charge(0, user, 'k'))).body
      const told = new Set(responses.map(({ body }) => body.checkout_status))
      for (const status of told) assert.ok(['processing', last.checkout_status].includes(status), status)
      const movements = await billing.ledger(last.order_id)
      assert.equal(movements.length, last.checkout_status === 'succeeded' ? 1 : 0)
      assert.equal((await shop.consumables(user)).length, movements.length)
    })
  }
})

describe('200 requests with different keys for one customer', () => {
  test('the provider never has two at once; each key is charged at most once', async () => {
    const user = await shop.customer({ token: 'sim_slow_30ms' })
    const watching = watch(user)
    const responses = await many(200, (n) => charge(n, user, `key-${n}`))
    const most = await watching.stop()
    const begun = responses.filter(({ status }) => status === 200)
    const busy = responses.filter(({ status }) => status === 400)
    assert.equal(begun.length + busy.length, 200)
    for (const { body } of busy) assert.match(body.message, /Another charge of this customer is in progress/)
    for (const { body } of begun) assert.equal(body.checkout_status, 'succeeded')
    assert.ok(begun.length >= 1)
    assert.equal(most, 1, 'orders in progress at once')
    const spans = await spansOf(user)
    assert.equal(spans.length, begun.length)
    for (const [n, span] of spans.entries()) {
      const [movement, ...more] = await billing.ledger(span.order_id)
      assert.deepEqual(more, [])
      const at = Date.parse(movement!.at)
      // Each was made after the one before it was settled, also if its row waited for that. (The ledger's times are cut to milliseconds.)
      assert.ok(at >= Math.floor(span.created) && at <= span.settled, 'moved while in progress')
      if (n > 0) assert.ok(at >= Math.floor(spans[n - 1]!.settled), 'moved after the one before it was settled')
    }
  })

  /** Asks again and again how many of the customer's charges are in progress. */
  function watch(user: string) {
    let isOver = false
    const counting = (async () => {
      let most = 0
      while (!isOver) {
        const [row] = await billing.db.query(
          `select count(*) as n from orders where external_id = $1 and status = 'processing'`,
          [user],
        )
        most = Math.max(most, Number(row!.n))
      }
      return most
    })()
    return {
      stop: () => {
        isOver = true
        return counting
      },
    }
  }

  async function spansOf(user: string) {
    const rows = await billing.db.query(
      `select order_id, extract(epoch from created_at) * 1000 as created, extract(epoch from settled_at) * 1000 as settled
       from orders where organization_id = $1 and external_id = $2 order by settled_at`,
      [shop.id, user],
    )
    return rows.map((row) => ({ order_id: row.order_id!, created: Number(row.created), settled: Number(row.settled) }))
  }
})

describe('refunds racing for more than the amount', () => {
  for (const token of ['pm_card_visa', 'sim_refund_slow_50ms', 'sim_refund_then_drop']) {
    test(`${token}: never more is paid back than was charged`, async () => {
      const user = await shop.customer({ token })
      const { order_id } = (await charge(0, user, 'k')).body
      const keys = Array.from({ length: 60 }, () => randomUUID())
      const ask = (n: number) =>
        post(n, '/payment/refund', { external_id: user, order_id, amount: 3, idempotency_key: keys[n] })
      // Those who find another one in progress come again, as clients do.
      const responses = await many(60, async (n) => {
        for (let tries = 0; ; tries++) {
          const response = await ask(n)
          if (tries > 40 || !/in progress/.test(response.body.message ?? '')) return response
          await new Promise((resolve) => setTimeout(resolve, 20 + n))
        }
      })
      const begun = responses.flatMap(({ status, body }) => (status === 200 ? [body.refund_id] : []))
      await settled(() => ask(responses.findIndex(({ status }) => status === 200)))
      const back = (await Promise.all(begun.map((id) => billing.ledger(id)))).flat()
      const sum = back.reduce((total, { amount }) => total + amount, 0)
      assert.ok(sum <= 10, `${sum} of 10 were paid back`)
      assert.ok(back.length >= 1 && back.length <= 3)
      assert.equal(new Set(begun).size, begun.length)
      const rest = await settled(() =>
        post(0, '/payment/refund', { external_id: user, order_id, idempotency_key: 'rest' }),
      )
      if (rest.status === 200) assert.equal(rest.body.amount_refunded, 10)
    })
  }

  test('50 full refunds at once: one is made', async () => {
    const user = await shop.customer()
    const { order_id } = (await charge(0, user, 'k')).body
    const responses = await many(50, (n) => post(n, '/payment/refund', { external_id: user, order_id }))
    assert.equal(responses.filter(({ status }) => status === 200).length, 1)
    assert.equal((await billing.ledger()).filter(({ type, amount }) => type === 'refund' && amount === 10).length, 1)
    assert.equal((await shop.consumables(user))[0].is_active, false)
  })
})

test('one key for refunds of two orders at once: one refund', async () => {
  const user = await shop.customer()
  const orders = [(await charge(0, user, 'a')).body.order_id, (await charge(1, user, 'b')).body.order_id]
  const responses = await many(40, (n) =>
    post(n, '/payment/refund', { external_id: user, order_id: orders[n % 2], amount: 2, idempotency_key: 'k' }),
  )
  const made = new Set(responses.flatMap(({ status, body }) => (status === 200 ? [body.refund_id] : [])))
  assert.equal(made.size, 1)
  for (const { status, body } of responses) {
    if (status !== 200) assert.equal(body.code, 'idempotency_key_reused')
  }
})
