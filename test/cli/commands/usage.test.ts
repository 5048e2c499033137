// What commands print where, the file their settings come from, and how they refuse bad usage.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { tundish } from '../../support/cli.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../../support/events.ts'
import { tundishAgain } from '../../support/resident.ts'
import { noTerminal, openTerminal } from '../../support/terminal.ts'
import { titled } from '../../support/titled.ts'

const events = await openEvents()
after(() => events.close())
const env = events.settings

test(titled('a list is a table where it fits the terminal, else lines; no value is cut', noTerminal), {
  skip: noTerminal,
}, async () => {
  const id = await events.event({ object_id: 'o'.repeat(60) })
  const list = async (columns: number) => {
    const terminal = openTerminal(['event', 'list', '--project', PROJECT], env, columns)
    await terminal.ended
    return terminal.output().replaceAll('\r', '')
  }
  const [wide, narrow] = [await list(200), await list(80)]
  assert.match(wide, /^id +type +object_id +sequence +created_at$/m)
  assert.match(narrow, new RegExp(`^id +${id}\n^type +charge.succeeded\n^object_id +o{60}$`, 'm'))
  assert.ok(narrow.split('\n').every((line) => line.length <= 80))
  for (const output of [wide, narrow]) assert.doesNotMatch(output, /…/)
})

test('settings come from --env-file, unless the environment has them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-env-file-'))
  try {
    const file = join(folder, 'tundish.env')
    const { LOG_LEVEL: _level, ...settings } = env
    const lines = Object.entries({ ...settings, LOG_LEVEL: 'loud' }).map(([name, value]) => `${name}=${value}`)
    writeFileSync(file, `# The service's settings\n${lines.join('\n')}\n`)
    assert.match((await tundish(['org', 'list', `--env-file=${file}`])).stderr, /^LOG_LEVEL must be one of/)
    const { stdout, stderr } = await tundish(['--env-file', file, 'org', 'list'], { LOG_LEVEL: 'error' })
    assert.match(stdout, new RegExp(`^${ORGANIZATION} `, 'm'), stderr)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('bad usage is exit code 2, a refusal is 1, each with a sentence', async () => {
  const cases: [args: string[], code: number, sentence: RegExp][] = [
    [['webhook', 'create', '--project', PROJECT, '--url', 'ftp://x'], 2, /^url must be a URL/],
    [['webhook', 'set', 'x', '--project', PROJECT, '--enabled', 'maybe'], 2, /^enabled must be true or false/],
    [['webhook', 'list', '--project', 'nowhere'], 1, /^There is no project "nowhere"/],
    [['keys', 'list'], 2, /^Give either --org or --project/],
    [['event', 'list', '--project', PROJECT, '--limit', '0'], 2, /^limit must be a whole number/],
    ...['', 'x'.repeat(101), 'two\nlines'].map((name): [string[], number, RegExp] => [
      ['org', 'create', 'named', '--name', name],
      2,
      /^A name must have 1 to 100 characters and no control characters\.\n$/,
    ]),
    [['project', 'create', 'named', '--org', ORGANIZATION, '--name', ' '], 2, /^A name must have 1 to 100/],
    [['keys', 'create', '--project', PROJECT, '--name', 'two\nlines'], 2, /^A name must have 1 to 100/],
    [['operator', 'create', '--name', 'two\nlines'], 2, /^A name must have 1 to 100/],
    ...['', 'x'.repeat(257), 'a\tb'].map((id): [string[], number, RegExp] => [
      ['merchant-account', 'set', 'simulator', id, '--org', ORGANIZATION],
      2,
      /^psp_merchant_id must have 1 to 256 characters and no control characters\.\n$/,
    ]),
    [['org', 'create', ORGANIZATION], 1, /exists already/],
    [['operator', 'create', '--name', 'x', '--expires', '0d'], 2, /^--expires must be more than 0/],
    [['profile', 'erase', 'nobody', '--project', PROJECT], 1, /^There is no profile "nobody"/],
    [['webhook', 'listen', '--project', PROJECT, '--forward-to', 'localhost:3000'], 2, /^--forward-to must be an http/],
    [
      ['webhook', 'listen', '--project', PROJECT, '--forward-to', 'http://x', '--kinds', 'x'],
      2,
      /no kind of event "x"/,
    ],
    [['webhook', 'listen', '--project', 'nowhere', '--forward-to', 'http://x'], 1, /^There is no project "nowhere"/],
    [['org', 'list', '--env-file', '/nowhere'], 2, /^\/nowhere cannot be read: it does not exist \(ENOENT\)/],
  ]
  for (const [args, code, sentence] of cases) {
    const outcome = await tundishAgain(args, env)
    assert.equal(outcome.code, code, `${args.join(' ')}: ${outcome.stderr}`)
    assert.match(outcome.stderr, sentence)
    assert.equal(outcome.stdout, '')
  }
})
