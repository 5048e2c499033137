// What commands print where, the file their settings come from, and how they refuse bad usage.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CTRL_C, noTerminal, openTerminal, tundish } from '../../support/cli.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../../support/events.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { line, load } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
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
  const file = join(temporaryFolder(), 'tundish.env')
  const { LOG_LEVEL: _level, ...settings } = env
  const lines = Object.entries({ ...settings, LOG_LEVEL: 'loud' }).map(([name, value]) => `${name}=${value}`)
  writeFileSync(file, `# The service's settings\n${lines.join('\n')}\n`)
  assert.match((await tundish(['org', 'list', `--env-file=${file}`])).stderr, /^LOG_LEVEL must be one of/)
  const { stdout, stderr } = await tundish(['--env-file', file, 'org', 'list'], { LOG_LEVEL: 'error' })
  assert.match(stdout, new RegExp(`^${ORGANIZATION} `, 'm'), stderr)
})

/** A list with the settings of a file, whose LOG_LEVEL is refused. */
const listWith = (file: string) => tundishAgain(['--env-file', file, 'org', 'list'], { ...env, LOG_LEVEL: undefined })

test('a # within an unquoted value of --env-file belongs to it, as systemd reads the file', async () => {
  const file = join(temporaryFolder(), 'tundish.env')
  for (const [text, value] of [
    ['a#b', 'a#b'],
    ['a"#b # a comment', 'a"#b'],
    ["'a#b'", 'a#b'],
    ['a # a comment', 'a'],
  ]) {
    writeFileSync(file, `LOG_LEVEL=${text}\n`)
    const { stderr } = await listWith(file)
    assert.match(stderr, new RegExp(`^LOG_LEVEL must be one of .*, got "${value}"\\.`), text)
  }
})

test('--env-file reads its first setting behind a byte order mark, and refuses UTF-16', async () => {
  const file = join(temporaryFolder(), 'tundish.env')
  const refusal = async (text: string, encoding: BufferEncoding) => {
    writeFileSync(file, text, encoding)
    return (await listWith(file)).stderr
  }
  assert.match(await refusal('\ufeffLOG_LEVEL=loud\n', 'utf8'), /^LOG_LEVEL must be one of .*, got "loud"\./)
  for (const text of ['\ufeffLOG_LEVEL=loud\n', 'LOG_LEVEL=loud\n'])
    assert.equal(await refusal(text, 'utf16le'), `${file} is not UTF-8: convert it to plain UTF-8 text.\n`)
})

test('--env-file refuses a line that is no setting, without its text, and takes comments and values of several lines', async () => {
  const file = join(temporaryFolder(), 'tundish.env')
  const refusal = async (text: string) => {
    writeFileSync(file, text)
    return (await listWith(file)).stderr
  }
  const first = '\r\n  # comment\n; comment\nexport A = "one\nDATABASE_URL: two\nthree" # comment\n'
  assert.match(await refusal(`${first}LOG_LEVEL=loud`), /^LOG_LEVEL must be one of .*, got "loud"\./)
  for (const line of ['DATABASE_URL: postgres://x:secret@y', 'two', 'the name=value'])
    assert.equal(await refusal(`${first}${line}\n`), `${file}: line 7 is neither NAME=value nor a comment.\n`)
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
    [
      ['merchant-account', 'set', 'simulator', 'x', '--org', ORGANIZATION, '--region', 'a\tb'],
      2,
      /^region must not have control characters\.\n$/,
    ],
    [['org', 'create', ORGANIZATION], 1, new RegExp(`^The organization "${ORGANIZATION}" exists already\\.\n$`)],
    [['operator', 'create', '--name', 'x', '--expires', '0d'], 2, /^--expires must be more than 0/],
    [['profile', 'erase', 'nobody', '--project', PROJECT, '--yes'], 1, /^There is no profile "nobody"/],
    [['webhook', 'listen', '--project', PROJECT, '--forward-to', 'localhost:3000'], 2, /^--forward-to must be an http/],
    [
      ['webhook', 'listen', '--project', PROJECT, '--forward-to', 'http://x', '--kinds', 'x'],
      2,
      /no kind of event "x"/,
    ],
    [['webhook', 'listen', '--project', 'nowhere', '--forward-to', 'http://x'], 1, /^There is no project "nowhere"/],
    [['org', 'list', '--env-file', '/nowhere'], 2, /^\/nowhere cannot be read: it does not exist \(ENOENT\)/],
    [['backup', ''], 2, /^backup needs the name of a file\.\n$/],
    [['import', '--project', PROJECT, import.meta.filename, ''], 2, /^import needs the name of a file\.\n$/],
    [['shards', 'run', '--in', '', '--', 'doctor'], 2, /^--in needs the name of a folder\.\n$/],
    [['operator', 'create', '--name', 'x', '--key-file', ''], 2, /^--key-file needs the name of a file\.\n$/],
    ...[
      ['/nowhere/key', 'it does not exist (ENOENT)'],
      [`${import.meta.filename}/key`, 'a part of its path is not a folder (ENOTDIR)'],
    ].map(([file, why]): [string[], number, RegExp] => [
      ['operator', 'create', '--name', 'x', '--key-file', file!],
      1,
      new RegExp(`^${RegExp.escape(`${file} cannot be created in its folder: ${why}.`)}\n$`),
    ]),
    [['webhook', 'set', 'x', '--project', PROJECT], 2, /^Nothing to set: give --url, --kinds, --enabled\.\n$/],
    [['credits', 'unit', 'set', 'x', '--org', ORGANIZATION], 2, /^Nothing to set: give --name, --low-below\.\n$/],
  ]
  for (const [args, code, sentence] of cases) {
    const outcome = await tundishAgain(args, env)
    assert.equal(outcome.code, code, `${args.join(' ')}: ${outcome.stderr}`)
    assert.match(outcome.stderr, sentence)
    assert.equal(outcome.stdout, '')
  }
})

test('operator create --key-file - takes standard input and creates no file', async () => {
  const { code, stderr } = await tundish(['operator', 'create', '--name', 'x', '--key-file', '-'], env, '')
  assert.deepEqual([code, stderr], [1, 'No secret was given.\n'])
  assert.ok(!existsSync('-'))
})

test('bad usage is 2 for a tenant that does not exist, before anything is looked up', async () => {
  const none = { org: ['--org', 'nowhere'], project: ['--project', 'nowhere'] }
  const cases: [args: string[], sentence: RegExp][] = [
    ...['lots', 'JPY=1.5', 'QQQ=1'].map((amount): [string[], RegExp] => [
      ['org', 'set', 'nowhere', '--max-amount', amount],
      /^(A maximum must be|JPY has 0 decimal places|"QQQ" is not a currency)/,
    ]),
    [['org', 'set', 'nowhere', '--rate-limit', 'lots'], /^A rate limit must be/],
    [['project', 'create', 'a b', ...none.org], /^The project id "a b" must be/],
    [['project', 'create', 'public', ...none.org], /^"public" is reserved/],
    [['project', 'set', 'nowhere', '--rate-limit', 'lots'], /^A rate limit must be/],
    [['merchant-account', 'set', 'simulator', 'm', ...none.org, '--currencies', 'QQQ'], /^"QQQ" is not a currency/],
    [['credits', 'unit', 'create', 'A!', ...none.org], /^A unit has 1 to 64/],
    [['credits', 'unit', 'create', 'a', ...none.org, '--low-below', 'lots'], /^low_below must be/],
    [['credits', 'unit', 'set', 'a', ...none.org, '--low-below', 'lots'], /^low_below must be/],
    ...['grant', 'adjust'].map((how): [string[], RegExp] => [
      [
        ...['credits', how, ...none.org, '--external-id', 'x', '--unit', 'a', '--amount', 'lots'],
        ...['--idempotency-key', 'k', ...(how === 'adjust' ? ['--reason', 'x'] : [])],
      ],
      /^amount must be/,
    ]),
    ...['lots', '[]', '{"a":1,"a":2}'].map((metadata): [string[], RegExp] => [
      [
        ...['credits', 'grant', ...none.org, '--external-id', 'x', '--unit', 'a', '--amount', '1'],
        ...['--idempotency-key', 'k', '--metadata', metadata],
      ],
      /^metadata must be a JSON object such as/,
    ]),
    [
      ['credits', 'rule', 'set', 'a', ...none.org, '--currency-code', 'USD', '--charged', '1', '--amount', 'lots'],
      /^amount must be/,
    ],
    [['credits', 'days', 'yesterday', ...none.org], /^from must be a day such as/],
    [['credits', 'days', '0000-01-01', ...none.org], /^from must be from/],
    [
      ['credits', 'cap', 'set', ...none.org, '--scope', 'customer', '--per', 'day', '--most', 'lots'],
      /^most must be .*, got "lots"/,
    ],
    [
      [
        ...['credits', 'top-up', 'set', ...none.org, '--external-id', 'x', '--unit', 'a', '--below', 'lots'],
        ...['--amount', '1', '--currency-code', 'USD', '--most-per-day', '1', '--most-per-month', '1'],
      ],
      /^below must be/,
    ],
    [['keys', 'list', ...none.project, '--cursor', 'x'], /^cursor must be a next_cursor/],
    [['order', 'list', ...none.org, '--cursor', 'x'], /^cursor must be a next_cursor/],
    [['order', 'refund', 'x', ...none.org, '--yes', '--amount', '1'], /^idempotency_key is required/],
    [['order', 'refund', 'x', ...none.org, '--yes', '--amount', 'lots', '--idempotency-key', 'k'], /^amount must/],
    [['order', 'resolve', 'x', ...none.org, '--as', 'failed', '--because', ' '], /^because must say why/],
    [['webhook', 'create', ...none.project, '--url', 'ftp://x'], /^url must be a URL/],
    [['webhook', 'set', 'x', ...none.project, '--url', 'ftp://x'], /^url must be a URL/],
    [['figures', 'show', 'sales', ...none.project, '--from', '2026-02-02', '--to', '2026-02-01'], /^from must not be/],
    [['figures', 'show', 'sales', ...none.project, '--from', 'x'], /^from must be a day such as 2026-01-31, got "x"/],
    [['report', ...none.org, '--from', '2026-02-02', '--to', '2026-02-01'], /^--from must not be after --to/],
    ...[
      ['keys', 'regenerate', ...none.project],
      ['profile', 'erase', 'x', ...none.project],
      ['order', 'refund', 'x', ...none.org],
    ].map((args): [string[], RegExp] => [args, /^This cannot be undone, and there is no terminal .+: add --yes\.$/m]),
  ]
  for (const [args, sentence] of cases) {
    const { code, stdout, stderr } = await tundishAgain(args, env)
    assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, sentence)
  }
})

describe(titled('a command that cannot be undone asks at the terminal', noTerminal), { skip: noTerminal }, () => {
  const PROFILES = ['pro_asked', 'pro_twin'].map((id) => line.profile({ id, email: 'asked@example.com' }))
  const erase = ['profile', 'erase', 'pro_asked', '--project', PROJECT]
  const emailOf = async () => {
    const [row] = await events.app.db.query(`select email from profiles where project_id = $1 and id = 'pro_asked'`, [
      PROJECT,
    ])
    return row!.email
  }
  before(() => load(events.app, PROJECT, PROFILES))

  for (const [name, keys] of Object.entries({ no: 'no\r', 'an empty line': '\r', 'Ctrl-C': CTRL_C })) {
    test(`1 and nothing is changed for ${name}`, async () => {
      const terminal = openTerminal(erase, env)
      await terminal.untilPrinted(/Type "yes" to go on: /)
      terminal.press(keys)
      assert.equal(await terminal.ended, 1)
      assert.match(terminal.output(), /^Erases the personal data of profile pro_asked of project \S+: .+\(0\)/)
      assert.match(terminal.output(), /Not erased, though probably the same person: pro_twin\. Add --with-twins/)
      assert.match(terminal.output(), /Not confirmed: nothing was changed\./)
      assert.equal(await emailOf(), 'asked@example.com')
    })
  }

  test('1 at once for a profile that does not exist', async () => {
    const terminal = openTerminal(erase.with(2, 'pro_nobody'), env)
    assert.equal(await terminal.ended, 1)
    assert.equal(terminal.output(), 'There is no profile "pro_nobody".\r\n')
  })

  test('0 after yes, for an erasure and for a new key', async () => {
    for (const [args, shown] of [
      [erase, /This cannot be undone\./],
      [
        ['keys', 'regenerate', '--org', ORGANIZATION],
        /Creates a new key for organization \S+ and ends its valid keys \(1\) at once/,
      ],
    ] as const) {
      const terminal = openTerminal([...args], env)
      await terminal.untilPrinted(/Type "yes" to go on: /)
      terminal.press('yes\r')
      assert.equal(await terminal.ended, 0, terminal.output())
      assert.match(terminal.output(), shown)
    }
    assert.equal(await emailOf(), null)
  })
})
