// tundish import stripe as a user runs it: keys, a dry run, the report, and what is refused.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { tundish } from '../../support/cli.ts'
import { storeOrder } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { openStripeSimulator, savedCard, TEST_KEY } from '../../support/simulators.ts'
import { openImportCommand } from './import-command.ts'

const simulator = await openStripeSimulator({ demoCustomers: 20 })
const { imports, folder, env, stop } = await openImportCommand({ STRIPE_API_URL: simulator.url })
const project = await imports.project()
const keyFile = join(folder, 'key')
writeFileSync(keyFile, `${TEST_KEY}\n`)
after(async () => {
  await stop()
  await simulator.cleanUp()
})

const run = (...args: string[]) =>
  tundishAgain(['import', 'stripe', '--org', project.organizationId, '--project', project.id, ...args], env)
const stored = async () =>
  Number((await imports.row('select count(*) as n from profiles where project_id = $1', [project.id])).n)

test('a dry run reads and checks everything, and writes nothing', async () => {
  const { code, stdout, stderr } = await run('--key-file', keyFile, '--dry-run')
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /This was a dry run: nothing was stored\.\n$/)
  assert.equal(await stored(), 0)
})

test('everything is imported, and the report shows both sides', async () => {
  const { code, stdout, stderr } = await run('--key-file', keyFile)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^customers +20 +20$/m)
  assert.match(stdout, /^payments +\d{4}-\d\d +USD +(\d+ +[0-9.]+) +\1$/m)
  assert.match(stdout, /Everything read at Stripe is stored here, with the same sums\.\n$/)
  assert.ok((await stored()) >= 20)
})

test('payments read with a separate key belong to the merchant account that is connected to its account', async () => {
  const real = await openStripeSimulator({ livemode: true })
  const [liveKey, realKey] = [join(folder, 'live'), 'sk_live_realkey123']
  writeFileSync(liveKey, realKey)
  try {
    const [test, live] = [await imports.project(), await imports.project()]
    const at = { test: env, live: { ...env, STRIPE_API_URL: real.url } }
    const words = (id: string, org: string) => ['merchant-account', 'connect', 'stripe', id, '--org', org]
    await tundish([...words('shop-test', test.organizationId), '--sandbox'], at.test, TEST_KEY)
    await tundish(words('shop-live', live.organizationId), at.live, realKey)
    const from = async (mode: keyof typeof at, { id, organizationId }: typeof live, ...more: string[]) => {
      const file = mode === 'test' ? keyFile : liveKey
      const command = ['import', 'stripe', '--org', organizationId, '--project', id, '--key-file', file, ...more]
      return (await tundishAgain(command, at[mode])).stderr
    }
    assert.equal(
      await from('test', live, '--merchant-account', 'shop-live'),
      'Merchant account "shop-live" is live, and this is a test mode key.\n',
    )
    assert.equal(
      await from('live', test, '--merchant-account', 'shop-test'),
      'Merchant account "shop-test" is a sandbox, and this is a live mode key.\n',
    )
    assert.equal(await from('test', test), '')
    const accounts = 'select distinct psp_merchant_id as id from report_transactions where organization_id = $1'
    assert.deepEqual(await imports.rows(accounts, [test.organizationId]), [{ id: 'shop-test' }])
  } finally {
    await real.cleanUp()
  }
})

test('charges that Tundish made and that have no order here are not said to be here', async () => {
  const client = simulator.client()
  const { customer, payment_method } = await savedCard(client)
  const metadata = { tundish_order: randomUUID(), tundish_key: 'a key of a restored backup' }
  const how = { confirm: true, off_session: true, metadata }
  const { id } = await client.paymentIntents.create({ ...how, amount: 700, currency: 'usd', customer, payment_method })
  const { stdout } = await run('--key-file', keyFile)
  assert.match(stdout, /^1 were charged by Tundish itself and are left out\.$/m)
  assert.match(stdout, /^1 of these charges has no order here: .* tundish reconcile lost\.$/m)
  await imports.rows(
    `update lost_movements set accepted_at = db_clock(), accepted_because = 'elsewhere' where transaction_id = $1`,
    [id],
  )
  const again = await run('--key-file', keyFile)
  assert.doesNotMatch(again.stdout, /has no order here/)
})

test('a charge that another organization made with the same account is not called lost', async () => {
  const client = simulator.client()
  const { customer, payment_method } = await savedCard(client)
  const other = await imports.project()
  const [order, key] = [randomUUID(), 'a key of the other organization']
  await storeOrder(imports.db, other, order, key)
  const how = { confirm: true, off_session: true, metadata: { tundish_order: order, tundish_key: key } }
  await client.paymentIntents.create({ ...how, amount: 700, currency: 'usd', customer, payment_method })
  assert.doesNotMatch((await run('--key-file', keyFile)).stdout, /no order here/)
})

test('an account that the server follows is refused, and is read from the beginning once that was stopped', async () => {
  const { id, organizationId } = await imports.project()
  const words = ['merchant-account', 'connect', 'stripe', 'shop-test', '--org', organizationId, '--sandbox']
  await tundish(words, env, TEST_KEY)
  const inBackground = async (verb: string, ...more: string[]) => {
    const { code, stdout } = await tundishAgain(
      ['stripe-import', verb, 'shop-test', '--project', id, '--json', ...more],
      env,
    )
    assert.equal(code, 0)
    return JSON.parse(stdout)
  }
  const read = (...more: string[]) =>
    tundishAgain(['import', 'stripe', '--org', organizationId, '--project', id, ...more], env)
  assert.equal((await read()).code, 0)
  await inBackground('start', '--follow', 'true')
  for (const more of [[], ['--follow']]) {
    const refused = await read(...more)
    assert.match(refused.stderr, /^An import .* is running already: wait for it, or stop it first\.\n$/)
    assert.equal(refused.code, 1)
  }
  const { status, follow, read: count } = await inBackground('show')
  assert.deepEqual([status, follow], ['waiting', true])
  await inBackground('stop')
  const { code, stderr, stdout } = await read()
  assert.deepEqual([code, stderr], [0, ''])
  assert.ok(stdout.includes(`\n${count} objects read at Stripe.\n`), stdout)
})

test('one JSON document, with the key on standard input and since a time', async () => {
  const args = ['import', 'stripe', '--json', '--org', project.organizationId, '--project', project.id]
  const since = new Date(Date.now() - 90 * 86_400_000).toISOString()
  const { code, stdout } = await tundish([...args, '--key-file', '-', '--since', since], env, `${TEST_KEY}\n`)
  const report = JSON.parse(stdout)
  assert.deepEqual([code, report.status, report.differences, report.rejected], [0, 'done', [], 0])
  const months = report.figures.map(({ month }: { month: string | null }) => month).filter(Boolean)
  assert.ok(months.every((month: string) => month >= since.slice(0, 7)))
})

test('one sentence for each refused import', async () => {
  const other = await imports.project()
  const wrong = join(folder, 'wrong')
  writeFileSync(wrong, 'sk_live_realkey123')
  const refused: [string[], number, RegExp][] = [
    [[], 1, /^The organization has no merchant account at Stripe: run tundish merchant-account connect first\.\n$/],
    [['--merchant-account', 'x'], 1, /^Merchant account "x" is not connected to Stripe/],
    [['--key-file', wrong], 1, /^Stripe rejects the secret key/],
    [['--key-file', env['DATA_DIR']!], 1, /cannot be read/],
    [
      ['--key-file', keyFile, '--since', 'yesterday'],
      2,
      /^--since must be an RFC 3339 date-time such as \S+, got "yesterday"\.$/m,
    ],
    [['--key-file', keyFile, '--dry-run', '--follow'], 2, /exclude each other/],
    [['--key-file', keyFile, '--project', other.id], 1, /has no project/],
  ]
  for (const [args, code, sentence] of refused) {
    const outcome = await run(...args)
    assert.match(outcome.stderr, sentence)
    assert.deepEqual([outcome.code, outcome.stdout], [code, ''])
  }
})
