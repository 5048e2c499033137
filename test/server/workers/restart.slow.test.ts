// SIGHUP: the workers are replaced one after another, and no client notices.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProcess } from '../../support/cli.ts'
import { until } from '../../support/time.ts'
import { openClient, openWorkers, sendUntilStopped } from './workers.ts'

const workers = await openWorkers(2)
after(() => workers.close())

const LONG = { timeout: 240_000 }
const restarted = 'All workers are new.'

test('under load no request fails, also with two restarts at once, and long requests are finished', LONG, async () => {
  const { shop, process: supervisor } = workers
  const old = workers.pids()
  assert.equal(old.length, 2)
  const read = { key: shop.projectKey }
  const sending = [
    sendUntilStopped(workers, 6, (client) => client.call('/public/v1/subscriptions', read), 2),
    // Most of the time these are connected and silent.
    sendUntilStopped(workers, 6, (client) => client.call('/public/v1/funnels', read), 900),
    sendUntilStopped(workers, 2, (client) => client.call('/health/ready', { headers: ['Connection', 'close'] }), 20),
  ]
  const slow = workers.client()
  try {
    await sleep(300)
    const external_id = await shop.customer({ token: 'sim_slow_4000ms' })
    const charge = slow.call(`/${shop.id}/v1/payment/one_off_charge`, {
      method: 'POST',
      body: { external_id, amount: 5, currency_code: 'USD', idempotency_key: 'slow' },
      headers: ['service-secret-key', shop.key],
    })
    await sleep(200)
    supervisor.kill('SIGHUP')
    await sleep(100)
    supervisor.kill('SIGHUP')
    await workers.untilLogged(restarted, 2)
    const { body } = await charge
    assert.equal(body.checkout_status, 'succeeded', JSON.stringify(body))
  } finally {
    slow.close()
    const received = await Promise.all(sending.map((stop) => stop()))
    assert.deepEqual(
      received.map(({ wrong }) => wrong),
      [[], [], []],
    )
    // Each of two restarts bids farewell to each connection; those that close by themselves need none.
    assert.ok(received[0]!.closing >= 6 && received[1]!.closing >= 6, JSON.stringify(received))
  }
  const now = workers.pids()
  assert.equal(now.length, 2)
  assert.ok(now.every((pid) => !old.includes(pid)))
})

test('a new worker that cannot serve replaces no other', async () => {
  const { billing, process: supervisor, shop } = workers
  const old = workers.pids()
  await billing.db.query(`insert into schema_migrations (version, name, breaking) values (9999, 'tomorrow', true)`)
  supervisor.kill('SIGHUP')
  const sentence = (text: string) => workers.log.find(({ msg }) => msg?.includes(text))
  await until('the refusal', () => sentence('migrated by a newer Tundish: 9999 (tomorrow)') !== undefined)
  assert.match(
    sentence('tomorrow')!.msg!,
    /^The restart stopped, and the remaining workers keep running, because a new one cannot start: /,
  )
  assert.deepEqual(workers.pids(), old)
  const client = workers.client()
  assert.equal((await client.call('/public/v1/funnels', { key: shop.projectKey })).status, 200)
  client.close()
  await billing.db.query('delete from schema_migrations where version = 9999')
})

test('a process without workers logs that it has none, and continues', async () => {
  const server = await startProcess(workers.billing.server.env)
  server.process.kill('SIGHUP')
  await until('the notice', () => server.log.some(({ msg }) => msg?.startsWith('SIGHUP restarts the workers')))
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200)
  await server.stop()
  assert.deepEqual(await server.ended, { code: 0, signal: null })
})

test('a server that stops waits for an unfinished request only until REQUEST_TIMEOUT_MS', LONG, async () => {
  const { shop, billing } = workers
  const env = { ...billing.server.env, REQUEST_TIMEOUT_MS: '2000', HEADERS_TIMEOUT_MS: '1000' }
  for (const key of ['wrong', shop.key]) {
    const server = await startProcess(env)
    const { hostname, port } = new URL(server.url)
    const socket = connect({ host: hostname, port: Number(port) }).on('error', () => {})
    const head = [
      `POST /${shop.id}/v1/my_assets HTTP/1.1`,
      'host: x',
      `service-secret-key: ${key}`,
      'content-type: application/json',
      'content-length: 400',
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n{`)
    await sleep(300)
    const stopping = performance.now()
    await server.stop()
    assert.deepEqual(await server.ended, { code: 0, signal: null })
    assert.ok(performance.now() - stopping < 10_000)
    socket.destroy()
  }
})

test('a server that stops does not wait for a request on a connection on which nothing was sent', LONG, async () => {
  const server = await startProcess({ ...workers.billing.server.env, REQUEST_TIMEOUT_MS: '600000' })
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) }).on('error', () => {})
  await once(socket, 'connect')
  // This one was accepted after it.
  await (await fetch(server.url)).text()
  await server.stop()
  assert.deepEqual(await server.ended, { code: 0, signal: null })
})

test('a server that stops closes the connection of a client with the response it waits for', LONG, async () => {
  const { shop, billing } = workers
  const external_id = await shop.customer({ token: 'sim_slow_2000ms' })
  for (const args of [[], ['--workers', '1']]) {
    const server = await startProcess(billing.server.env, args)
    const client = openClient(server.url)
    const charge = client.call(`/${shop.id}/v1/payment/one_off_charge`, {
      method: 'POST',
      body: { external_id, amount: 5, currency_code: 'USD', idempotency_key: `last ${args}` },
      headers: ['service-secret-key', shop.key],
    })
    await until('the charge to begin', begun)
    const stopping = performance.now()
    await Promise.all([server.stop(), charge])
    const { body, headers } = await charge
    assert.deepEqual([body.checkout_status, headers.connection], ['succeeded', 'close'])
    assert.ok(performance.now() - stopping < 40_000)
    client.close()
  }

  async function begun(): Promise<boolean> {
    const [row] = await billing.db.query(`select count(*) as n from orders where status = 'processing'`)
    return row!['n'] === '1'
  }
})
