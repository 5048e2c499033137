// org, project and keys: what they print, for people and for programs, and how they refuse.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { jsonOf } from '../../support/cli.ts'
import { setUpEnv } from '../../support/database.ts'
import { tundishAgain } from '../../support/resident.ts'

const KEY = /^secret_[A-Za-z0-9_-]{43}$/

describe('organizations, projects and keys', () => {
  const env = setUpEnv()

  const run = (...args: string[]) => tundishAgain(args, env)
  const json = (...args: string[]) => jsonOf(run(...args, '--json'))

  test('operator link prints the address of DASHBOARD_URL, or of the listener, also on IPv6', async () => {
    const { id } = await json('operator', 'create', '--name', 'Ada')
    for (const [settings, origin] of [
      [{ ADMIN_HOST: '::1', ADMIN_PORT: '81' }, 'http://[::1]:81'],
      [{ ADMIN_HOST: '127.0.0.1', ADMIN_PORT: '81' }, 'http://127.0.0.1:81'],
      [{ ADMIN_PORT: '81', DASHBOARD_URL: 'https://tundish.example.com' }, 'https://tundish.example.com'],
    ] as const) {
      const { url } = await jsonOf(tundishAgain(['operator', 'link', id, '--json'], { ...env, ...settings }))
      assert.equal(new URL(url).origin, origin)
    }
  })

  test('org create prints one JSON document with the key, and nothing else', async () => {
    const { stdout } = await tundishAgain(['org', 'create', 'acme', '--name', 'Acme', '--json'], env)
    const made = JSON.parse(stdout)
    assert.deepEqual(Object.keys(made), ['id', 'secret_key'])
    assert.equal(made.id, 'acme')
    assert.match(made.secret_key, KEY)
    const [listed] = await json('org', 'list')
    assert.equal(listed.name, 'Acme')
    assert.deepEqual(await json('org', 'list', '--search', 'aCM'), [listed])
    assert.deepEqual(await json('org', 'list', '--search', '%'), [])
    assert.doesNotMatch(JSON.stringify(listed), /secret_/)
  })

  for (const id of ['public', 'docs', '-x', 'a b', 'x'.repeat(65)]) {
    test(`2 for an organization called "${id.slice(0, 8)}"`, async () => {
      const { code, stderr } = await run('org', 'create', '--', id)
      assert.equal(code, 2)
      assert.match(stderr, /id|reserved/)
    })
  }

  test('org set prints the settings, for all currencies and for one', async () => {
    await run('org', 'create', 'limits')
    const set = await json(
      'org',
      'set',
      'limits',
      '--one-off-charge',
      'on',
      '--max-amount',
      '500',
      '--max-amount',
      'jpy=50000',
    )
    assert.deepEqual([set.one_off_charge_enabled, set.one_off_charge_max_amount], [true, { '*': '500', JPY: '50000' }])
    assert.deepEqual(await json('org', 'show', 'limits'), set)
  })

  for (const [args, sentence] of [
    [['acme'], /Nothing to set/],
    [['acme', '--one-off-charge', 'maybe'], /on or off/],
    [['acme', '--max-amount', '1e3'], /1e3/],
    [['acme', '--max-amount', 'XAU=1'], /XAU/],
    [['acme', '--max-amount', 'JPY=1.5'], /JPY has 0 decimal places/],
    [['acme', '--max-amount', 'usd=5', '--max-amount', 'USD=6'], /^--max-amount for USD is given twice\.\n$/],
    [['acme', '--max-amount', '5', '--max-amount', '6'], /^--max-amount without a currency is given twice\.\n$/],
  ] as const) {
    test(`2 for org set ${args.slice(1).join(' ')}`, async () => {
      const { code, stderr } = await run('org', 'set', ...args)
      assert.equal(code, 2)
      assert.match(stderr, sentence)
    })
  }

  for (const [right, wrong] of [
    [
      ['--rate-limit', '300/900'],
      ['--max-amount', 'JPY=1.5'],
    ],
    [
      ['--max-amount', '777'],
      ['--rate-limit', 'fast'],
    ],
  ] as const) {
    test(`2 for org set ${wrong.join(' ')}, and ${right.join(' ')} next to it is not set either`, async () => {
      const before = await json('org', 'show', 'acme')
      assert.equal((await run('org', 'set', 'acme', ...right, ...wrong)).code, 2)
      assert.deepEqual(await json('org', 'show', 'acme'), before)
    })
  }

  test('org set --rate-limit has one entry in the audit log', async () => {
    await run('org', 'create', 'limited')
    await run('org', 'set', 'limited', '--rate-limit', '10')
    const { data } = await json('audit', 'list', '--target', 'organization limited')
    const actions = data.map(({ action }: { action: string }) => action)
    assert.deepEqual(actions, ['rate_limit.set', 'organization.created'])
  })

  test('1 for settings of an organization that does not exist', async () => {
    const { code, stderr } = await run('org', 'set', 'nobody', '--one-off-charge', 'on')
    assert.deepEqual([code, stderr], [1, 'There is no organization "nobody".\n'])
  })

  test('project create prints the key, and 1 without its organization', async () => {
    await run('org', 'create', 'owner')
    const made = await json('project', 'create', 'shop', '--org', 'owner')
    assert.match(made.secret_key, KEY)
    assert.equal(made.webhook_secret, `whsec_${Buffer.from(made.secret_key).toString('base64')}`)
    const [listed] = await json('project', 'list')
    assert.deepEqual([listed.id, listed.organization_id], ['shop', 'owner'])
    assert.equal((await json('project', 'list', '--search', 'HO')).length, 1)
    assert.equal((await run('project', 'list', '--search', 'owner')).stdout, 'Nothing found.\n')
    const { code, stderr } = await run('project', 'create', 'other', '--org', 'nobody')
    assert.deepEqual([code, stderr], [1, 'There is no organization "nobody".\n'])
  })

  for (const [limit, sentence] of Object.entries({
    off: 'without limit',
    default: 'as fast as RATE_LIMIT says',
    '200/1000': '200 requests a second, 1000 at once',
  })) {
    test(`project set --rate-limit ${limit} says what it means`, async () => {
      const { code, stdout } = await run('project', 'set', 'shop', '--rate-limit', limit)
      assert.deepEqual([code, stdout], [0, `Each key of project shop may send ${sentence}.\n`])
    })
  }

  test('project set changes nothing when one of its options is refused', async () => {
    const before = await json('project', 'show', 'shop')
    for (const [refused, sentence] of [
      [['--time-zone', 'typo'], /^time_zone must be a name/],
      [['--time-zone', 'Europe/Madrid', '--currency', 'XAU'], /^currency must be a currency/],
    ] as const) {
      const changed = ['--rate-limit', '7', '--write-payments', 'on']
      const { code, stderr } = await run('project', 'set', 'shop', ...changed, ...refused)
      assert.equal(code, 2)
      assert.match(stderr, sentence)
    }
    assert.deepEqual(await json('project', 'show', 'shop'), before)
    assert.equal((await run('project', 'set', 'shop', '--time-zone', 'Europe/Madrid', '--rate-limit', '0')).code, 2)
    assert.deepEqual(await json('project', 'show', 'shop'), before)
  })

  test('keys regenerate creates another key, and with an overlap prints until when the old one is valid', async () => {
    const { secret_key: first } = await json('org', 'create', 'rotating')
    const second = await json('keys', 'regenerate', '--yes', '--org', 'rotating')
    assert.match(second.secret_key, KEY)
    assert.notEqual(second.secret_key, first)
    assert.equal(second.previous_expires_at, null)
    const third = await json('keys', 'regenerate', '--yes', '--org', 'rotating', '--overlap', '24h')
    const fourth = await json('keys', 'regenerate', '--yes', '--org', 'rotating', '--overlap', '0s')
    assert.equal(fourth.previous_expires_at, null)
    const hours = (Date.parse(third.previous_expires_at) - Date.now()) / 3_600_000
    assert.ok(hours > 23.9 && hours < 24.1, third.previous_expires_at)
  })

  for (const args of [
    [],
    ['--org', 'acme', '--project', 'shop'],
    ['--org', 'acme', '--overlap', '24'],
    ['--org', 'acme', '--overlap', '400d'],
  ]) {
    test(`2 for keys regenerate --yes ${args.join(' ')}`, async () => {
      const { code, stdout } = await run('keys', 'regenerate', '--yes', ...args)
      assert.deepEqual([code, stdout], [2, ''])
    })
  }
})
