// The command line gives a slow connection time before it tries the next address of a host, and not too much.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import dns from 'node:dns'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { send } from '../../src/core/events/send.ts'
import { Client } from '../../src/lib/pg/client.ts'
import { connectionOf } from '../../src/lib/pg/hosts.ts'
import '../../src/main.ts'
import { freshDatabase } from '../support/postgres.ts'
import { openProxy } from '../support/proxy.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/time.ts'

const target = await startReceiver()
after(() => target.close())

test('an address that connects after more than 250 ms is not given up for one that leads nowhere', async () => {
  const stop = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
  const resolve = async () => {
    // When the connection has begun, nothing goes on in this process, as with a receiver that is far away.
    queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => process.nextTick(stop))))
    return ['127.0.0.1', '192.0.2.1'].map((address) => ({ address, family: 4 }))
  }
  const url = `http://hooks.example.com:${target.port}/`
  // From here on timers come before connections.
  await nextTurn()
  const { status, error } = await send(url, {}, '{}', { allowPrivate: true, resolve, deadlineMs: 30_000 })
  assert.deepEqual([status, error], [204, undefined])
})

// Accepts nothing: when its queue is full, the system drops what arrives.
const NOWHERE = `require('node:net').createServer().listen({ port: Number(process.argv[1]), host: '127.0.0.2', backlog: 1 }, () => {
  require('node:fs').writeSync(1, 'listening')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})`

test('one of several hosts of the database is reached though its first address leads nowhere', async (t) => {
  const proxy = await openProxy((await freshDatabase()).url)
  t.after(() => proxy.cut())
  const { url } = proxy
  const { port } = new URL(url)
  const nowhere = spawn(process.execPath, ['-e', NOWHERE, port], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => nowhere.kill('SIGKILL'))
  await once(nowhere.stdout, 'data')
  const waiting = Array.from({ length: 16 }, () => connect(Number(port), '127.0.0.2').on('error', () => {}))
  t.after(() => waiting.map((socket) => socket.destroy()))
  await Promise.all(waiting.slice(0, 2).map((socket) => once(socket, 'connect')))
  const { lookup } = dns
  const addresses = ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 }))
  const found = (name: string, options: object, done: (error: null, all: object[]) => void) =>
    name === 'db.example.com' ? done(null, addresses) : lookup(name, options, done as never)
  t.mock.method(dns, 'lookup', found as never)
  const settings = connectionOf(`${url.replace('127.0.0.1', 'db.example.com')}?target_session_attrs=read-write`)
  // On a busy machine the rest of a try may take too long.
  await until('a connection', async () => {
    const client = new Client(settings)
    client.on('error', () => {})
    const isConnected = await client.connect().then(
      () => true,
      () => false,
    )
    await client.end()
    return isConnected
  })
})
