// Signals while a server starts: whatever it has begun by then, nothing of it stays behind.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isAlive } from '../../../src/lib/embedded/account.ts'
import { PROGRAM_ENV } from '../../support/cli.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { until } from '../../support/time.ts'
import { titled, without } from '../../support/titled.ts'

const MAIN = join(import.meta.dirname, '../../../src/main.ts')
const LONG = { timeout: 300_000 }

interface Starting {
  child: ChildProcess
  output: { stdout: string; stderr: string }
  ended: Promise<{ code: number | null; signal: string | null }>
}

/** Starts `serve` in its own process group, as a shell does. */
function start(env: Record<string, string>, args: string[]): Starting {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN, 'serve', ...args], {
    env: { ...PROGRAM_ENV, PORT: '0', ADMIN_PORT: '0', ...env },
    detached: true,
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (output.stderr += text))
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  return { child, output, ended }
}

/** The processes that descend from it. */
function descendants(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
    .filter((one) => parentOf(one) === pid)
  return children.flatMap((one) => [one, ...descendants(one)])
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/\) \S ([0-9]+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return undefined
  }
}

const noProc = without('/proc/self/stat')
describe(titled('a signal while "serve --workers" starts', noProc), { ...LONG, skip: noProc }, () => {
  let database: Awaited<ReturnType<typeof freshDatabase>>
  let env: Record<string, string>
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-start-'))
  before(async () => {
    database = await freshDatabase()
    env = { DATABASE_URL: database.url, DATA_DIR: folder, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
  })
  after(async () => {
    await database.drop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** When the signal is sent, by what can be seen from outside. */
  const MOMENTS: Record<string, (starting: Starting, workers: number[]) => boolean> = {
    'the supervisor runs': ({ child }) => parentOf(child.pid!) !== undefined,
    'a worker is forked': (_starting, workers) => workers.length > 0,
    'all workers are forked': (_starting, workers) => workers.length === 3,
    'a worker is ready': ({ output }) => output.stdout.includes('A worker is ready.'),
  }
  for (const [moment, hasCome] of Object.entries(MOMENTS)) {
    for (const [signal, toGroup] of [
      ['SIGTERM', false],
      ['SIGINT', true],
      ['SIGKILL', false],
    ] as const) {
      test(`${signal}${toGroup ? ' to the group' : ''} when ${moment} leaves no process behind`, async () => {
        const starting = start(env, ['--workers', '3'])
        const { pid } = starting.child
        const seen = new Set<number>()
        await until(moment, () => {
          for (const one of descendants(pid!)) seen.add(one)
          return hasCome(starting, [...seen])
        })
        process.kill(toGroup ? -pid! : pid!, signal)
        for (const one of descendants(pid!)) seen.add(one)
        const { code } = await starting.ended
        await until('all have ended', () => ![...seen].some(isAlive), 60_000)
        if (signal === 'SIGKILL' || moment === 'the supervisor runs') return
        assert.deepEqual([code, starting.output.stderr], [0, ''])
      })
    }
  }

  test('Ctrl-C that ends a worker before the supervisor notices it is no failure', async () => {
    const starting = start(env, ['--workers', '1'])
    const { pid } = starting.child
    await until('a worker is forked', () => descendants(pid!).length > 0)
    const [worker] = descendants(pid!)
    process.kill(worker!, 'SIGINT')
    // Unless it ignores signals already.
    await until('its end', () => !isAlive(worker!) || starting.output.stdout.includes('A worker is ready.'))
    process.kill(pid!, 'SIGINT')
    assert.deepEqual([await starting.ended, starting.output.stderr], [{ code: 0, signal: null }, ''])
  })
})

const STOPPING = 'Stopping. Another Ctrl-C or SIGTERM stops at once.\n'

describe('a signal while "serve" makes its embedded database', LONG, () => {
  for (const [signal, args] of [
    ['SIGTERM', []],
    ['SIGINT', ['--workers', '2']],
  ] as const) {
    test(`${signal} leaves no draft and no PostgreSQL: serve ${args.join(' ')}`, async () => {
      const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-start-'))
      // As root, PostgreSQL's account has to pass.
      chmodSync(folder, 0o711)
      const starting = start({ DATA_DIR: folder }, [...args])
      const drafts = () =>
        existsSync(join(folder, 'postgres'))
          ? readdirSync(join(folder, 'postgres')).filter((name) => name.startsWith('draft-'))
          : []
      await until('initdb works', () =>
        drafts().some((draft) => existsSync(join(folder, 'postgres', draft, 'PG_VERSION'))),
      )
      const seen = descendants(starting.child.pid!)
      starting.child.kill(signal)
      assert.deepEqual(await starting.ended, { code: 0, signal: null })
      assert.deepEqual([starting.output.stderr, drafts(), seen.filter(isAlive)], [STOPPING, [], []])
      rmSync(folder, { recursive: true, force: true })
    })
  }
})
