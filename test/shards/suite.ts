// npm run test:deep shards -- suite: the tests of the three APIs through HAProxy, beside another shard.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { FILES_OUT, OUT } from './suite-out.ts'
import type { Reported } from './suite-reporter.ts'

const FILES = ['test/data/public/*.test.ts', 'test/payments/billing/*.test.ts', 'test/operator/admin/*.test.ts']

/** Prints the share that passes. 1 when a test fails that the list does not have, or passes though it is in it. */
export async function runSuite(given: readonly string[]): Promise<number> {
  const files =
    given.length > 0
      ? [...given]
      : await Array.fromAsync(glob(FILES, { exclude: ['**/*.slow.test.ts', ...Object.keys(FILES_OUT)] }))
  const tests = await run(files.sort())
  const failed = tests.filter(({ outcome }) => outcome === 'failed')
  const passed = tests.filter(({ outcome }) => outcome === 'passed')
  const isOut = ({ file, name }: Reported) => OUT[file]?.[name] !== undefined
  const surprising = failed.filter((one) => !isOut(one))
  const mended = passed.filter(isOut)
  for (const { file, name, why } of surprising) print(`FAILED  ${file}: ${name}\n        ${why?.split('\n')[0]}`)
  for (const { file, name } of mended) print(`PASSED  ${file}: ${name}, which suite-out.ts excepts`)
  print(
    `${passed.length} of ${passed.length + failed.length} tests pass through HAProxy; ${failed.length - surprising.length} are excepted.`,
  )
  return tests.length > 0 && surprising.length + mended.length === 0 ? 0 : 1
}

async function run(files: readonly string[]): Promise<Reported[]> {
  const child = spawn('bin/test', ['--test-reporter=./test/shards/suite-reporter.ts', ...files], {
    env: { ...process.env, TUNDISH_TEST_FRONT: 'haproxy' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  const tests: Reported[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{')) continue
    const one = JSON.parse(line) as Reported
    tests.push(one)
    if (one.outcome === 'failed') process.stderr.write(`${one.file}: ${one.name}\n`)
  }
  await ended
  return tests
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
