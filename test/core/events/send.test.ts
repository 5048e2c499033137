// One attempt: where it may go, how long it may take, and what is reported without a response.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { resolverFor, type SendOptions, send } from '../../../src/core/events/send.ts'
import { freePort } from '../../support/cli.ts'
import { startReceiver } from '../../support/receiver.ts'

const target = await startReceiver()
after(() => target.close())

const at =
  (...addresses: string[]) =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
const post = (url: string, options: Partial<SendOptions> = {}) =>
  send(url, {}, '{}', { allowPrivate: false, resolve: at('127.0.0.1'), deadlineMs: 30_000, ...options })

const REFUSED = 'The host is not at a public address (WEBHOOK_ALLOW_PRIVATE=true allows others).'

test('refused after its name was resolved: a name that leads to a private address', async () => {
  const url = `http://hooks.example.com:${target.port}/`
  for (const address of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1']) {
    assert.equal((await post(url, { resolve: at(address) })).error, REFUSED, address)
  }
  assert.equal(target.arrivals.length, 0)
  assert.equal((await post(url, { allowPrivate: true })).status, 204, 'the same is reached where it is allowed')
})

test('refused: private addresses written into the URL in whatever form', async () => {
  const before = target.arrivals.length
  const hosts = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
  ]
  for (const host of hosts) assert.equal((await post(`http://${host}:${target.port}/`)).error, REFUSED, host)
  assert.equal(target.arrivals.length, before)
})

test('a name is resolved once, so that the connection goes to the address that was checked', async () => {
  const before = target.arrivals.length
  let asked = 0
  // The first look-up returns a public address without a server; a second one would return a local one.
  const resolve = async () => at(asked++ === 0 ? '192.0.1.1' : '127.0.0.1')()
  const outcome = await post(`http://hooks.example.com:${target.port}/`, { resolve, deadlineMs: 500 })
  assert.equal(outcome.status, undefined)
  assert.deepEqual([asked, target.arrivals.length], [1, before])
})

test('of several addresses the private ones are left out', async () => {
  const before = target.arrivals.length
  const resolve = at('127.0.0.1', '192.0.1.1')
  const outcome = await post(`http://hooks.example.com:${target.port}/`, { resolve, deadlineMs: 500 })
  assert.notEqual(outcome.error, REFUSED)
  assert.equal(target.arrivals.length, before)
})

test('a missing response has a reason: refused connection, unknown name, deadline, broken response', async () => {
  const reason = async (url: string, options: Partial<SendOptions> = {}) =>
    (await post(url, { allowPrivate: true, ...options })).error
  assert.equal(await reason(`http://127.0.0.1:${await freePort()}`), 'The connection was refused.')
  const plain = target.url.replace('http:', 'https:')
  assert.equal(await reason(plain), 'The TLS connection could not be made.')
  const unknown = async () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' }))
  assert.equal(await reason('http://nowhere.example/', { resolve: unknown }), 'The host name is unknown.')
  const never = () => new Promise<never>(() => {})
  assert.equal(
    await reason('http://nowhere.example/', { resolve: never, deadlineMs: 500 }),
    'There was no response within 0.5 s.',
  )
  const broken = await startReceiver((_arrival, response) => {
    response.socket!.destroy()
    return undefined
  })
  assert.equal(await reason(broken.url), 'The connection broke before a response.')
  await broken.close()
})

test('a response that changes to another protocol is a failure', { timeout: 60_000 }, async () => {
  const changing = await startReceiver((_arrival, response) => {
    response.socket!.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    return undefined
  })
  const outcome = await post(changing.url, { allowPrivate: true })
  assert.deepEqual([outcome.status, outcome.error], [undefined, 'The connection broke before a response.'])
  await changing.close()
})

test('a status that came in time counts, though its body never ends', { timeout: 60_000 }, async () => {
  const dripping = await startReceiver((_arrival, response) => {
    response.writeHead(200).write('so far')
    return undefined
  })
  let outcome: Awaited<ReturnType<typeof send>> | undefined
  // On a busy machine the status may need more time.
  for (let deadlineMs = 500; outcome?.status === undefined && deadlineMs < 40_000; deadlineMs *= 4)
    outcome = await post(dripping.url, { allowPrivate: true, deadlineMs })
  assert.deepEqual([outcome?.status, outcome?.answer], [200, 'so far'])
  await dripping.close()
})

test('where private addresses are allowed, names of the hosts file are known', async () => {
  const found = await resolverFor({ allowPrivate: true })('localhost')
  assert.ok(found.some(({ address }) => address === '127.0.0.1' || address === '::1'))
})

/** A name server on 127.0.0.1 whose every name has the address 192.0.1.1. */
async function startNameServer() {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const end = query.indexOf(0, 12) + 5
    const isIpv4 = query.readUInt16BE(end - 4) === 1
    const head = [...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isIpv4 ? 1 : 0, 0, 0, 0, 0]
    const record = isIpv4 ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 1, 1] : []
    socket.send(Buffer.from([...head, ...query.subarray(12, end), ...record]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { address: `127.0.0.1:${socket.address().port}`, close: () => socket.close() }
}

test('name servers that are others since the start are found after a look-up that failed', async () => {
  const server = await startNameServer()
  const gone = await startNameServer()
  gone.close()
  let servers = [gone.address]
  const resolve = resolverFor({ allowPrivate: false, servers: () => servers })
  try {
    servers = [server.address]
    const outcome = await post('http://hooks.example.com/', { resolve, deadlineMs: 30_000 })
    assert.equal(outcome.error, 'The name server did not respond.')
    assert.deepEqual(await resolve('hooks.example.com'), [{ address: '192.0.1.1', family: 4 }])
  } finally {
    server.close()
  }
})
