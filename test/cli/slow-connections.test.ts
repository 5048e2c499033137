// The command line gives a slow connection time, before it tries the next address of a host.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { send } from '../../src/core/events/send.ts'
import '../../src/main.ts'
import { startReceiver } from '../support/receiver.ts'

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
