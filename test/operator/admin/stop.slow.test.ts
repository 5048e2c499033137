// The operator's listener when the server stops: an import has no time limit, but one that does not go on is given up.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startAdmin } from '../../support/admin.ts'
import { openEvents, PROJECT } from '../../support/events.ts'
import { line } from '../../support/imports.ts'

/** Begins an import whose lines follow one after another, and stops the server; without any its body stands still. */
async function stopDuring(lines: string[], pauseMs: number) {
  const events = await openEvents()
  const admin = await startAdmin(events)
  const { hostname, port } = new URL(admin.adminUrl)
  const socket = connect(Number(port), hostname).on('error', () => {})
  let heard = ''
  const begins = new Promise((resolve) => socket.once('data', resolve))
  socket.on('data', (chunk) => (heard += chunk))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const head = [
    `POST /admin/v1/projects/${PROJECT}/import HTTP/1.1`,
    'host: localhost',
    `authorization: Bearer ${admin.key}`,
    'content-type: application/x-ndjson',
    // It says so when it begins to read.
    'expect: 100-continue',
    `content-length: ${lines.length === 0 ? 1000 : Buffer.byteLength(lines.join(''))}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${lines[0] ?? '{"record"'}`)
  assert.match(String(await begins), /^HTTP\/1\.1 100 /)
  const begun = performance.now()
  const stopped = admin.stop().then(() => performance.now() - begun)
  for (const text of lines.slice(1)) {
    await sleep(pauseMs)
    socket.write(text)
  }
  const late = sleep(20_000, Number.POSITIVE_INFINITY, { ref: false })
  const afterMs = await Promise.race([closed.then(() => stopped), late])
  socket.destroy()
  await stopped
  await events.close()
  return { heard, afterMs }
}

test('a server that stops does not wait for an import without progress', { timeout: 60_000 }, async () => {
  const { afterMs } = await stopDuring([], 0)
  assert.ok(afterMs > 4000 && afterMs < 12_000, `stopped after ${afterMs} ms`)
})

test('a server that stops waits for an import with progress, for longer than that', { timeout: 60_000 }, async () => {
  const lines = ['a', 'b', 'c', 'd', 'e'].map((id) => `${JSON.stringify(line.funnel({ id }))}\n`)
  const { heard, afterMs } = await stopDuring(lines, 2000)
  assert.match(heard, /\r\n\r\nHTTP\/1\.1 200 [\s\S]*"written":5/)
  assert.ok(afterMs > 7000, `stopped after ${afterMs} ms`)
})
