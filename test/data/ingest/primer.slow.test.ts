// tundish import primer: the payments of an account with their people, cards and refunds; twice, killed, and with odd payments.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { spawnTundish, succeeded, tundish } from '../../support/cli.ts'
import { untilUnlocked } from '../../support/database.ts'
import { load } from '../../support/imports.ts'
import { PRIMER_MERCHANT, setUpPrimerShop } from '../../support/primer-billing.ts'
import { until } from '../../support/time.ts'

const setup = setUpPrimerShop()
let made = 0
const args = (...more: string[]) => [
  ...['import', 'primer', '--org', setup.shop.id, '--project', setup.shop.projectId],
  ...['--merchant-account', PRIMER_MERCHANT, '--since', '2026-01-01T00:00:00Z', '--json', ...more],
]
const run = async (...more: string[]) => {
  const { code, stdout, stderr } = await tundish(args(...more), setup.billing.server.env)
  return { code, stderr, report: stdout === '' ? undefined : JSON.parse(stdout) }
}

/** A payment that another program makes at Primer. */
async function paid(token: string, more: object = {}) {
  const n = ++made
  const body = {
    orderId: `shop-${n}`,
    amount: 1999,
    currencyCode: 'USD',
    paymentMethodToken: `${token}~o${n}`,
    ...more,
  }
  const { body: payment } = await setup.primer.call('POST', '/payments', body)
  return String(payment['id'])
}

const rows = (externalId: string) =>
  setup.billing.db.query(
    `select psp_transaction_type || ' ' || status || ' ' || amount::text as row, payment_method_token as token
     from report_transactions where organization_id = $1 and external_id = $2 and imported order by trx_created_at, trx_id`,
    [setup.shop.id, externalId],
  )

describe('import primer', () => {
  test('customers, attempts, refunds and saved cards are stored, and the sums agree', async () => {
    const good = await paid('tok_visa', { customerId: 'ida' })
    await setup.primer.control('/refunds', { id: good, amount: 500 })
    await paid('tok_fallback', { customerId: 'ida', currencyCode: 'JPY', amount: 2980 })
    await paid('tok_expired_card', { customerId: 'joe' })
    await paid('tok_authorized', { customerId: 'kim' })
    const guest = await paid('tok_visa')
    const { code, report, stderr } = await run()
    assert.equal(code, 0, stderr)
    assert.deepEqual([report.status, report.differences, report.rejected], ['done', [], 0])
    const sums = report.figures.map((one: Record<string, unknown>) => [
      ...[one['kind'], one['currency'], one['here_count'], one['here_sum']],
    ])
    assert.deepEqual(sums, [
      ['failed payments', 'JPY', 1, '2980'],
      ['failed payments', 'USD', 1, '19.99'],
      ['payments', 'JPY', 1, '2980'],
      ['payments', 'USD', 2, '39.98'],
      ['refunds', 'USD', 1, '5.00'],
    ])
    const ofIda = (await rows('ida')).map(({ row }) => row).sort()
    assert.deepEqual(ofIda, ['refund refunded 5.00', 'sale failed 2980', 'sale succeeded 19.99', 'sale succeeded 2980'])
    assert.deepEqual(
      (await rows('joe')).map(({ row }) => row),
      ['sale failed 19.99'],
    )
    assert.equal((await rows(`guest_${guest}`)).length, 1)
    assert.deepEqual(await rows('kim'), [])
    const [times] = await setup.billing.db.query(
      `select count(*)::text as transactions, count(r)::text as with_a_payment_at_their_time
       from transactions t join customers c on c.project_id = t.project_id and c.profile_id = t.profile_id
       left join report_transactions r on r.organization_id = $1 and r.external_id = c.external_id and r.status = 'succeeded'
         and r.psp_date = t.created_at
       where c.organization_id = $1`,
      [setup.shop.id],
    )
    assert.deepEqual(times, { transactions: '3', with_a_payment_at_their_time: '3' })
    const [profile] = await setup.billing.db.query('select id from profiles where project_id = $1 and id = $2', [
      setup.shop.projectId,
      'ida',
    ])
    assert.equal(profile?.id, 'ida')
  })

  test('a saved card can be charged after the move; one that was deleted at Primer, or used once only, cannot', async () => {
    await paid('tok_visa', { customerId: 'lea' })
    const deleted = `tok_visa~o${made + 1}`
    await paid('tok_visa', { customerId: 'max' })
    await setup.primer.call('DELETE', `/payment-instruments/${deleted}`)
    const guest = await paid('tok_visa')
    assert.equal((await run()).code, 0)
    assert.equal((await setup.shop.charge('lea')).body.checkout_status, 'succeeded')
    for (const user of ['max', `guest_${guest}`])
      assert.equal((await setup.shop.charge(user)).body.message, 'The customer has no saved card.', user)
  })

  test('a second run adds what changed, and nothing twice; payments made by Tundish are left out', async () => {
    const payment = await paid('tok_visa', { customerId: 'nia' })
    const own = await setup.charged()
    assert.equal((await run()).code, 0)
    const before = await rows('nia')
    await setup.primer.control('/refunds', { id: payment })
    const { report } = await run()
    assert.equal(report.differences.length, 0)
    assert.ok(report.own >= 1)
    assert.deepEqual((await rows('nia')).length, before.length + 1)
    assert.deepEqual(await rows(own.user), [{ row: 'sale succeeded 5', token: own.card }])
  })

  test('a customer who is here already keeps their profile, and one without a profile gets one', async () => {
    const lines = [
      { record: 'profile', data: { id: 'pro_eve', created_at: '2026-01-01T00:00:00Z' } },
      { record: 'customer', data: { external_id: 'eve', profile_id: 'pro_eve' } },
      { record: 'customer', data: { external_id: 'fay', email: 'fay@example.com' } },
    ]
    await load(setup.billing.server.app, setup.shop.projectId, lines)
    const payments = [
      await paid('tok_visa', { customerId: 'eve' }),
      await paid('tok_visa', { customerId: 'fay', customer: { emailAddress: 'other@example.com' } }),
    ]
    const { code, stderr } = await run()
    assert.equal(code, 0, stderr)
    for (const payment of payments) assert.ok(!stderr.includes(payment), stderr)
    const transactions = await setup.billing.db.query(
      'select profile_id from transactions where project_id = $1 and id = any($2) order by profile_id',
      [setup.shop.projectId, payments],
    )
    assert.deepEqual(
      transactions.map(({ profile_id }) => profile_id),
      ['fay', 'pro_eve'],
    )
    const customers = await setup.billing.db.query(
      `select external_id, email, profile_id from customers where organization_id = $1 and external_id in ('eve', 'fay')
       order by external_id`,
      [setup.shop.id],
    )
    assert.deepEqual(
      customers.map(({ external_id, email, profile_id }) => [external_id, email, profile_id]),
      [
        ['eve', null, 'pro_eve'],
        ['fay', 'fay@example.com', 'fay'],
      ],
    )
  })

  test('a charge of Tundish that has no order here is not said to be here', async () => {
    const text = args().filter((one) => one !== '--json')
    const before = await tundish(text, setup.billing.server.env)
    assert.match(before.stdout, /^\d+ were charged by Tundish itself and are here already\.$/m)
    await paid('tok_visa', { metadata: { tundish_key: 'a key of a restored backup' } })
    await paid('tok_expired_card', { metadata: { tundish_key: 'another key' } })
    const after = await tundish(text, setup.billing.server.env)
    assert.match(after.stdout, /^\d+ were charged by Tundish itself and are left out\.$/m)
    assert.match(after.stdout, /^1 of these charges has no order here: .* tundish reconcile lost\.$/m)
  })

  test('a dry run counts everything and stores nothing', async () => {
    await paid('tok_visa', { customerId: 'ola' })
    const { code, report } = await run('--dry-run')
    assert.deepEqual([code, report.status, await rows('ola')], [0, 'dry_run', []])
  })

  test('a payment that cannot be read is named, and what is stored is all else', async () => {
    const odd = await paid('tok_visa', { customerId: 'pia', currencyCode: 'HUF' })
    const text = args().filter((one) => one !== '--json')
    const { code, stdout, stderr } = await tundish(text, setup.billing.server.env)
    assert.deepEqual([code, stderr], [0, `${odd} returned 1999 HUF, which cannot be converted\n`])
    assert.match(
      stdout,
      /1 could not be imported\.\nEverything else read at Primer is stored here, with the same sums\./,
    )
  })

  test('a payment that a proxy in front of Primer does not find at first is imported', async (t) => {
    await paid('tok_visa', { customerId: 'behind-proxy' })
    const seen = new Set<string>()
    const pages = ['<html>Not found</html>', '{"message": "no Route matched"}']
    const proxy = createServer(async ({ url = '', headers }, response) => {
      const page = /^\/payments\/[^/]+$/.test(url) && !seen.has(url) ? pages[seen.size % 2] : undefined
      seen.add(url)
      const key = { 'x-api-key': String(headers['x-api-key']), 'x-api-version': String(headers['x-api-version']) }
      const passed = page === undefined ? await fetch(setup.primer.url + url, { headers: key }) : undefined
      response.writeHead(passed?.status ?? 404, { 'content-type': 'application/json' })
      response.end(passed ? await passed.text() : page)
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    t.after(() => proxy.close())
    const PRIMER_API_URL = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const { code, stderr } = await tundish(args(), { ...setup.billing.server.env, PRIMER_API_URL })
    assert.equal(code, 0, stderr)
    assert.ok(!stderr.includes('status 404'), stderr)
    assert.equal((await rows('behind-proxy')).length, 1)
  })

  test('an import that was killed continues, and its sums agree', async () => {
    for (let n = 0; n < 5; n++) await paid('tok_visa', { customerId: `killed-${n}` })
    // The import reads its first month, and dies while it waits for the next one.
    await setup.primer.control('/faults', { method: 'GET', path: '/payments/.*', kind: 'error_before', times: 1000 })
    const child = spawnTundish(args(), setup.billing.server.env, 'ignore')
    const place = () =>
      setup.billing.db.query(
        `select place ->> 'since' as at from api_imports where source like 'primer %' and status = 'running'`,
      )
    await until('the first month to be read', async () => (await place())[0]?.at != null)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await untilUnlocked(setup.billing.db.query, 7487)
    await setup.primer.control('/faults/clear')
    const { code, report, stderr } = await run()
    assert.equal(code, 0, stderr)
    assert.deepEqual(report.differences, [])
    assert.equal((await rows('killed-4')).length, 1)
  })

  test('1 and a sentence for an account that is not connected, and for a key that was revoked', async () => {
    const other = args().map((one) => (one === PRIMER_MERCHANT ? 'nowhere' : one))
    const { code, stderr } = await tundish(other, setup.billing.server.env)
    assert.deepEqual([code, /"nowhere" is not connected to Primer/.test(stderr)], [1, true], stderr)
    await setup.primer.control('/faults', { path: '.*', kind: 'forbidden', times: 1000 })
    const refused = await run()
    await setup.primer.control('/faults/clear')
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /^Primer could not be read \(it returned status 403/m)
  })

  test('1 and a sentence while Primer cannot be reached', async () => {
    // It tries for three minutes.
    const hurried = `import { syncBuiltinESMExports } from 'node:module'
      import timers from 'node:timers/promises'
      const { setTimeout } = timers
      timers.setTimeout = (ms, ...more) => setTimeout(ms / 1000, ...more)
      syncBuiltinESMExports()`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hurried)}`
    const env = { ...setup.billing.server.env, PRIMER_API_URL: 'http://127.0.0.1:9', NODE_OPTIONS }
    const { code, stderr } = await tundish(args(), env)
    assert.deepEqual(
      [code, /^Primer could not be read \(no connection was made \(ECONNREFUSED\)\)\./m.test(stderr)],
      [1, true],
      stderr,
    )
  })

  test('a payment of just now is imported by a machine whose clock is an hour behind', async () => {
    await paid('tok_visa', { customerId: 'pat' })
    const behind = `const { now } = Date
      globalThis.Date = class extends Date {
        constructor(...given) { super(...(given.length === 0 ? [now() - 3600000] : given)) }
        static now() { return now() - 3600000 }
      }`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(behind)}`
    await succeeded(tundish(args(), { ...setup.billing.server.env, NODE_OPTIONS }))
    assert.equal((await rows('pat')).length, 1)
  })
})
