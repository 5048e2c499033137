// Ctrl-C during a test run leaves no process behind that a test has frozen.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { FORK_OPTIONS } from '../support/cli.ts'
import { until } from '../support/time.ts'

const ENDED = new URL('../support/ended.ts', import.meta.url).href
const CLI = new URL('../support/cli.ts', import.meta.url).href

const TEST = `
  import { spawn } from 'node:child_process'
  import { endWithTest } from '${CLI}'
  const child = spawn('sleep', ['600'])
  endWithTest(child)
  child.kill('SIGSTOP')
  console.log(child.pid)`

/** In a container without a process that collects them, one that has ended stays a zombie. */
function hasEnded(pid: number): boolean {
  try {
    return /\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}

const skip = process.platform === 'linux' ? false : 'there is no /proc'

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  test(`a frozen process ends with its test at ${signal}`, { skip }, async () => {
    const args = [...FORK_OPTIONS, '--import', ENDED, '--input-type=module', '--eval', TEST]
    const run = spawn(process.execPath, args, {
      env: { ...process.env, NODE_TEST_CONTEXT: 'child-v8' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines = createInterface(run.stdout)[Symbol.asyncIterator]()
    const pid = Number((await lines.next()).value)
    assert.ok(pid > 0)
    run.kill(signal)
    await once(run, 'exit')
    await until('the frozen process to end', async () => hasEnded(pid)).finally(() => {
      if (!hasEnded(pid)) process.kill(pid, 'SIGKILL')
    })
  })
