// The log's output when the program ends: all lines are written, and no broken output keeps it from ending.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { titled, without } from '../support/titled.ts'

const LOG = fileURLToPath(new URL('../../src/lib/log.ts', import.meta.url))

/** A program that writes some lines and ends at a line of its input. */
function program(t: TestContext, lines: number, stdout: 'pipe' | number) {
  const code = `
    const { openLog } = await import(${JSON.stringify(LOG)})
    const log = openLog('info')
    log.info('Ready.')
    process.stdin.once('data', () => {
      for (let n = 0; n < ${lines}; n++) log.info({ n }, 'A line.')
      process.exit(3)
    })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['pipe', stdout, 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  return { child, ended: once(child, 'exit') }
}

test('the program ends when the reader of its log is gone', { timeout: 60_000 }, async (t) => {
  const { child, ended } = program(t, 10, 'pipe')
  await once(child.stdout!, 'data')
  child.stdout!.destroy()
  await once(child.stdout!, 'close')
  child.stdin!.end('end\n')
  assert.deepEqual(await ended, [3, null])
})

const noFullDisk = without('/dev/full')
test(titled('the program ends when the disk of its log is full', noFullDisk), {
  timeout: 60_000,
  skip: noFullDisk,
}, async (t) => {
  const { child, ended } = program(t, 10, openSync('/dev/full', 'w'))
  child.stdin!.end('end\n')
  const [code] = await ended
  assert.notEqual(code, null)
})

test('a slow reader gets every line, in order', { timeout: 60_000 }, async (t) => {
  const { child, ended } = program(t, 5000, 'pipe')
  child.stdin!.end('end\n')
  let text = ''
  child.stdout!.on('data', (chunk) => {
    text += chunk
    child.stdout!.pause()
    setImmediate(() => child.stdout!.resume())
  })
  await Promise.all([ended, once(child.stdout!, 'end')])
  const numbers = text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line).n)
  assert.deepEqual(
    numbers,
    Array.from({ length: 5000 }, (_, n) => n),
  )
})
