// What holds for every command: help, bad usage, settings that are wrong, output that cannot be written.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { PROGRAM_ENV, tundish } from '../../support/cli.ts'
import { setUpEnv } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { titled, without } from '../../support/titled.ts'

const MAIN = join(import.meta.dirname, '../../../src/main.ts')
const KEY = randomBytes(32).toString('base64')

describe('the command line', () => {
  const folder = temporaryFolder()

  test('help names every command, and opens nothing', async () => {
    const { code, stdout } = await tundish(['--help'], { DATA_DIR: join(folder, 'untouched') })
    assert.equal(code, 0)
    for (const name of ['serve', 'migrate', 'doctor', 'org', 'project', 'keys', 'erasures', 'simulator']) {
      assert.match(stdout, new RegExp(`^ {2}${name}\\b`, 'm'))
    }
  })

  test('help has the commands under headings, each with a verb, and says where to begin', async () => {
    const { stdout } = await tundishAgain(['--help'])
    const [, listed] = stdout.split(/^Options:$/m)
    assert.match(listed!, /^The server:\n {2}serve /m)
    assert.match(listed!, /^To try it: tundish serve --demo$/m)
    const described = [...listed!.matchAll(/^ {2}[a-z-]+(?: (?:\[\w+\]|<[\w.]+>))* {2,}(\S)/gm)].map(
      ([, first]) => first!,
    )
    assert.ok(described.length >= 30)
    for (const first of described) assert.match(first, /[A-Z]/)
  })

  for (const [words, line] of [
    ['keys list', 'List the secret keys of an organization or a project'],
    ['figures show', 'Show figures of a project or an organization, the sums of its projects'],
    ['search', 'Usage: tundish search [options] <word>'],
    ['order list', '--status <processing|succeeded|failed|cancelled>'],
    ['order refund', '--soft-refund <true|false>'],
    ['order refund', 'With an amount, --idempotency-key is required'],
    ['order stuck', '--minutes <number> How long is too long, in minutes (default: 10)'],
    ['keys rotate', 'How long the old key stays valid: 24h, 90m, 7d; by default not at all'],
    ['event list', '--type <value> Only events of this kind: subscription.created, '],
    ['session list', 'in the time zone of the project. For example 2026-01-31'],
    ['project list', '--search <text>'],
  ] as const) {
    test(`help of ${words} has: ${line}`, async () => {
      const { stdout } = await tundishAgain([...words.split(' '), '--help'])
      assert.ok(stdout.replaceAll(/\s+/g, ' ').includes(line), stdout)
    })
  }

  test('help before the words of a command is the help of that command', async () => {
    for (const words of [['keys', 'list'], ['import', 'stripe'], ['org']]) {
      const [before, after] = [await tundishAgain(['help', ...words]), await tundishAgain([...words, '--help'])]
      assert.ok(before.stdout.startsWith(`Usage: tundish ${words.join(' ')} `), before.stdout)
      assert.deepEqual(before, after)
    }
  })

  test('help of a group has its commands in alphabetical order', async () => {
    const { stdout } = await tundishAgain(['project', '--help'])
    const names = [...stdout.split('Commands:\n')[1]!.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name)
    assert.deepEqual(names, ['create', 'help', 'list', 'names', 'readers', 'set', 'setup', 'show', 'state', 'writers'])
  })

  test('--version is that of the package', async () => {
    const { version } = JSON.parse(await readFile(join(import.meta.dirname, '../../../package.json'), 'utf8'))
    assert.deepEqual(await tundish(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
  })

  for (const command of ['webhook create', 'webhook set', 'merchant-account set']) {
    test(`help of ${command} says how a list is written`, async () => {
      const { stdout } = await tundishAgain([...command.split(' '), '--help'])
      assert.match(
        stdout.replaceAll(/\s+/g, ' '),
        /--(?:kinds|currencies) <list> [^.]+\. Several are separated by commas /,
      )
    })
  }

  for (const args of [
    ['org'],
    ['org', 'create'],
    ['keys', 'regenerate'],
    ['erasures', 'reapply'],
    ['doctor'],
    ['serve'],
  ]) {
    test(`0 and help for ${args.join(' ')} --help`, async () => {
      const { code, stdout } = await tundishAgain([...args, '--help'])
      assert.equal(code, 0)
      assert.match(stdout, new RegExp(`^Usage: tundish ${args.join(' ')}`))
    })
  }

  for (const args of [
    ['frobnicate'],
    ['org', 'create'],
    ['org', 'create', 'x', '--frobnicate'],
    ['project', 'create', 'x'],
  ]) {
    test(`2 and a sentence for ${args.join(' ')}`, async () => {
      const { code, stdout, stderr } = await tundishAgain(args, { DATA_DIR: folder })
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, /error: .+\n/)
    })
  }

  test('2 with every mistake in the settings at once', async () => {
    const { code, stderr } = await tundishAgain(['org', 'list'], {
      PORT: '80a',
      LOG_LEVEL: 'loud',
      MASTER_KEY: 'short',
      DATABASE_URL: 'mysql://user:hunter2@host/db',
    })
    assert.equal(code, 2)
    assert.equal(stderr.trim().split('\n').length, 4, stderr)
    for (const name of ['PORT', 'LOG_LEVEL', 'MASTER_KEY', 'DATABASE_URL'])
      assert.match(stderr, new RegExp(`^${name} must`, 'm'))
    assert.doesNotMatch(stderr, /hunter2/)
  })

  for (const address of ['http://exa mple', 'http://127.0.0.1:port', 'http://', 'https://user@:1/']) {
    test(`2 and one sentence for a simulator at ${address}`, async () => {
      const { code, stdout, stderr } = await tundishAgain(['org', 'list'], { SIMULATOR_URL: address, DATA_DIR: folder })
      assert.deepEqual([code, stdout], [2, ''])
      assert.equal(stderr, 'SIMULATOR_URL must be an address such as http://127.0.0.1:8090.\n')
    })
  }

  test('2 and one sentence when the data folder cannot be written, and nothing is made', async () => {
    const database = await freshDatabase()
    const env = { DATABASE_URL: database.url, MASTER_KEY: KEY }
    try {
      // A file where the folder should be.
      const { code, stdout, stderr } = await tundishAgain(['org', 'create', 'acme'], {
        ...env,
        DATA_DIR: import.meta.filename,
      })
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, /^\/.+ cannot be used: .*E[A-Z]+\)?\.\n$/)
      assert.match((await tundishAgain(['org', 'list'], env)).stdout, /no organization/)
    } finally {
      await database.drop()
    }
  })

  describe('output that cannot be written', () => {
    const env = setUpEnv({ DATA_DIR: folder })

    const noFullDisk = without('/dev/full')
    test(titled('1 and a sentence on a full disk', noFullDisk), { skip: noFullDisk }, async () => {
      for (const command of ['org list', '--help']) {
        const outcome = await inShell(`${command} > /dev/full`, env)
        assert.deepEqual(outcome, { code: 1, stderr: 'The output cannot be written (ENOSPC).\n' }, command)
      }
    })

    test('1 and a sentence for a file that takes a part of it', async () => {
      const outcome = await inShell(`--help > ${join(folder, 'part')}`, env, 'ulimit -f 1')
      assert.deepEqual(outcome, { code: 1, stderr: 'The output cannot be written (EFBIG).\n' })
    })

    test('0 and no message when the pipe is closed', async () => {
      assert.deepEqual(await inShell('audit list | head -c 0', env), { code: 0, stderr: '' })
    })
  })

  for (const command of ['simulator --port 0', 'serve']) {
    test(`2 and a sentence for ${command} when the lock of the ledger cannot be used`, async () => {
      const DATA_DIR = join(folder, command.split(' ')[0]!)
      const path = join(DATA_DIR, 'simulator.ndjson.lock')
      // A folder where the file should be.
      await mkdir(path, { recursive: true })
      const { code, stderr } = await tundish(command.split(' '), { DATA_DIR, PORT: '0', ADMIN_PORT: '0' })
      assert.deepEqual([code, stderr], [2, `${path} cannot be used (unable to open database file).\n`])
    })
  }
})

/** A line of a shell that runs `tundish` first; the exit code is that of `tundish`. */
function inShell(
  line: string,
  env: Record<string, string>,
  first = ':',
): Promise<{ code: number | null; stderr: string }> {
  const [command, rest] = line.split(/ (?=[>|])/) as [string, string]
  const script = `${first}; { "$NODE" --disable-warning=ExperimentalWarning "$MAIN" ${command}; echo $? >&3; } ${rest}`
  const NODE = process.execPath
  const program = spawn('/bin/sh', ['-c', script], {
    env: { ...PROGRAM_ENV, NODE, MAIN, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  const said = ['', '']
  for (const [n, stream] of [program.stdio[2], program.stdio[3]].entries())
    (stream as Readable).setEncoding('utf8').on('data', (text) => (said[n] += text))
  return new Promise((resolve) => program.on('close', () => resolve({ code: Number(said[1]), stderr: said[0]! })))
}
