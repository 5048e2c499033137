// Merchant accounts are connected with a key of the right mode and account, which is sealed and never returned.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { connectAccount } from '../../../src/payments/providers/connect.ts'
import { CTRL_C, noTerminal, openTerminal, succeeded, tundish } from '../../support/cli.ts'
import { openStripeSimulator } from '../../support/simulators.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'
import { titled } from '../../support/titled.ts'

const KEY = 'sk_test_simulated0000'
const LIVE = 'sk_live_12345678'
const SECRET = 'whsec_simulated0000000000'
const ACCOUNT = 'acct_1TundishDialect0'

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const { stripe } = billing
const shop = await billing.organization()

const ACCOUNTS = `/organizations/${shop.id}/merchant-accounts`

async function post(path: string, body?: object) {
  const response = await billing.server.admin(ACCOUNTS + path, { method: 'POST', ...(body && { body }) })
  return { ...response, code: response.headers['x-error-code'] }
}

describe('connecting over HTTP', () => {
  test('200 with the mode, the end of the key and the currencies, and never the secrets', async () => {
    const given = { sandbox: true, secret_key: KEY, webhook_secrets: [SECRET] }
    const response = await post(`/stripe/${ACCOUNT}/connect`, given)
    assert.equal(response.status, 200, response.text)
    const { currencies, ...rest } = response.body
    assert.deepEqual(rest, {
      psp: 'stripe',
      psp_merchant_id: ACCOUNT,
      sandbox: true,
      key_last4: '0000',
      webhook_secrets: 1,
      charges_enabled: true,
      missing_permissions: [],
      provider_account: ACCOUNT,
      provider_account_name: null,
      notifications_path: `/${shop.id}/v1/providers/stripe/${ACCOUNT}/events`,
    })
    assert.ok(currencies.includes('USD') && !currencies.includes('UGX'), currencies.join())
    const rows = await billing.db.query('select * from merchant_accounts')
    const log = await billing.db.query('select * from audit_log')
    const shown = response.text + JSON.stringify([rows, log]) + billing.server.logLines().join('')
    assert.ok(!shown.includes(KEY) && !shown.includes(SECRET), 'a secret is not sealed')
    const provider = await billing.server.app.providers.of(shop.id, 'stripe', ACCOUNT)
    assert.deepEqual([await provider?.isReachable(), provider?.isSandbox], [true, true])
  })

  test('a key is rotated within a second, without a restart', async () => {
    await post('/stripe/rotated/connect', { sandbox: true, secret_key: 'sk_test_first0000', webhook_secrets: [SECRET] })
    const { providers, clock } = billing.server.app
    assert.equal(await (await providers.of(shop.id, 'stripe', 'rotated'))!.isReachable(), true)
    await stripe.control('/keys/revoke', { key: 'sk_test_first0000' })
    assert.equal(await (await providers.of(shop.id, 'stripe', 'rotated'))!.isReachable(), false)
    const response = await post('/stripe/rotated/connect', { sandbox: true, secret_key: 'sk_test_second1111' })
    assert.deepEqual([response.body.key_last4, response.body.webhook_secrets], ['1111', 1], response.text)
    await clock.sleep(1000)
    assert.equal(await (await providers.of(shop.id, 'stripe', 'rotated'))!.isReachable(), true)
    const secrets = await post('/stripe/rotated/connect', { sandbox: true, webhook_secrets: [SECRET, `${SECRET}2`] })
    assert.deepEqual([secrets.body.key_last4, secrets.body.webhook_secrets], ['1111', 2], secrets.text)
  })

  test('the currencies stay narrowed to those that were set by hand', async () => {
    await billing.server.admin(`${ACCOUNTS}/stripe/narrowed`, { method: 'PUT', body: { currencies: ['EUR', 'UGX'] } })
    const response = await post('/stripe/narrowed/connect', { sandbox: true, secret_key: KEY })
    assert.deepEqual(response.body.currencies, ['EUR'])
  })

  const refused: Record<string, [path: string, body: object, status: number, code: string]> = {
    'a test key for a live account': ['/stripe/a/connect', { sandbox: false, secret_key: KEY }, 409, 'wrong_mode'],
    'a live key for a sandbox': ['/stripe/a/connect', { sandbox: true, secret_key: LIVE }, 409, 'wrong_mode'],
    'the key of another account': [
      '/stripe/acct_other/connect',
      { sandbox: true, secret_key: KEY },
      400,
      'wrong_account',
    ],
    'a publishable key': ['/stripe/a/connect', { sandbox: true, secret_key: 'pk_test_12345678' }, 400, 'invalid_value'],
    'no key at first': ['/stripe/a/connect', { sandbox: true, webhook_secrets: [SECRET] }, 400, 'property_required'],
    'nothing at all': ['/stripe/a/connect', { sandbox: true }, 400, 'property_required'],
    'the simulator': ['/simulator/a/connect', { sandbox: true, secret_key: KEY }, 400, 'invalid_value'],
  }
  for (const [what, [path, body, status, code]] of Object.entries(refused)) {
    test(`${status} ${code} for ${what}, and nothing is stored`, async () => {
      const response = await post(path, body)
      assert.deepEqual([response.status, response.code], [status, code], response.text)
      const stored = await billing.db.query(`select 1 from merchant_accounts where psp_merchant_id = 'a'`)
      assert.deepEqual(stored, [])
    })
  }

  test('400 credentials_refused for a key that was revoked', async () => {
    await stripe.control('/keys/revoke', { key: 'sk_test_revoked0' })
    const response = await post('/stripe/a/connect', { sandbox: true, secret_key: 'sk_test_revoked0' })
    assert.deepEqual([response.status, response.code], [400, 'credentials_refused'], response.text)
  })

  test('409 wrong_mode for a live account that is to become a sandbox, with a test key or without a key, also once disconnected', async () => {
    const live = await openStripeSimulator({ livemode: true })
    const { db, seal, clock } = billing.server.app
    const context = { db, seal, clock, stripeApiUrl: live.url, deadlineMs: 10_000 }
    const name = { organizationId: shop.id, psp: 'stripe', merchantId: 'real' }
    await connectAccount(context, name, { secretKey: LIVE, isSandbox: false })
    await live.cleanUp()
    const refused = async (given: object) => {
      const response = await post('/stripe/real/connect', { sandbox: true, ...given })
      assert.deepEqual([response.status, response.code], [409, 'wrong_mode'], response.text)
    }
    await refused({ secret_key: KEY })
    await refused({ webhook_secrets: [SECRET] })
    await post('/stripe/real/disconnect')
    await refused({ secret_key: KEY })
    const [row] = await db.query(`select is_sandbox from merchant_accounts where psp_merchant_id = 'real'`)
    assert.equal(row?.is_sandbox, 'f')
  })

  describe('a key of another account of the same mode', () => {
    const OTHER = 'sk_test_other0000'
    const other = { sandbox: true, secret_key: OTHER }
    const keyIn = async (merchantId: string) => {
      const where = 'where organization_id = $1 and psp_merchant_id = $2'
      const [row] = await billing.db.query(`select credentials_last4 as key from merchant_accounts ${where}`, [
        shop.id,
        merchantId,
      ])
      return row!.key
    }
    const assertRefused = async (merchantId: string) => {
      const response = await post(`/stripe/${merchantId}/connect`, other)
      assert.deepEqual([response.status, response.code], [400, 'wrong_account'], response.text)
      assert.match(response.body.message, /acct_1TundishDialect0.*acct_1Other/)
    }

    test('400 wrong_account under a name that is connected, and the key that was stored stays', async () => {
      await stripe.control('/keys/assign', { key: OTHER, account: 'acct_1Other' })
      await post('/stripe/mine/connect', { sandbox: true, secret_key: 'sk_test_minemine1234' })
      await assertRefused('mine')
      assert.equal(await keyIn('mine'), '1234')
      assert.equal((await post('/stripe/theirs/connect', other)).status, 200)
    })

    test('400 wrong_account under a name that was connected and is no longer', async () => {
      await post('/stripe/left/connect', { sandbox: true, secret_key: KEY })
      await post('/stripe/left/disconnect')
      await assertRefused('left')
      assert.equal((await post('/stripe/left/connect', { sandbox: true, secret_key: KEY })).status, 200)
    })

    test('400 wrong_account if the account was connected before accounts were stored, by its stored key', async () => {
      await post('/stripe/old/connect', { sandbox: true, secret_key: 'sk_test_older1234' })
      await billing.db.query(`update merchant_accounts set provider_account = null where psp_merchant_id = 'old'`)
      await assertRefused('old')
      assert.equal(await keyIn('old'), '1234')
      await stripe.control('/keys/revoke', { key: 'sk_test_older1234' })
      assert.equal((await post('/stripe/old/connect', { sandbox: true, secret_key: KEY })).status, 200)
    })
  })

  test('a disconnected account cannot be used, and is not connected in the other mode', async () => {
    await post('/stripe/gone/connect', { sandbox: true, secret_key: KEY })
    assert.deepEqual((await post('/stripe/gone/disconnect')).body, { disconnected: true })
    assert.equal(await billing.server.app.providers.of(shop.id, 'stripe', 'gone'), undefined)
    assert.equal((await post('/stripe/gone/disconnect')).status, 404)
    const other = await post('/stripe/gone/connect', { sandbox: false, secret_key: LIVE })
    assert.deepEqual([other.status, other.code], [409, 'wrong_mode'], other.text)
  })
})

describe('connecting at the command line', () => {
  const run = (input: string, ...more: string[]) =>
    tundish(['merchant-account', 'connect', 'stripe', 'piped', '--org', shop.id, ...more], billing.server.env, input)

  test('0 for a key and a signing secret from a pipe', async () => {
    const stdout = await succeeded(run(`${KEY}\n${SECRET}\n`, '--sandbox', '--json'))
    const { key_last4, webhook_secrets } = JSON.parse(stdout)
    assert.deepEqual([key_last4, webhook_secrets], ['0000', 1])
    assert.ok(!stdout.includes(KEY))
  })

  test('as text the currencies are a count, and with --json a list', async () => {
    const stdout = await succeeded(run(`${KEY}\n${SECRET}\n`, '--sandbox'))
    const listed = JSON.parse((await run(`${KEY}\n${SECRET}\n`, '--sandbox', '--json')).stdout)
    assert.match(stdout, new RegExp(`^currencies +${listed.currencies.length} currencies$`, 'm'))
  })

  test('1 and a sentence for a test key without --sandbox', async () => {
    const { code, stderr } = await run(KEY)
    assert.deepEqual([code, stderr.includes('test mode')], [1, true], stderr)
  })

  for (const [key, pressed] of Object.entries({ 'Ctrl-C': CTRL_C, 'Ctrl-D': '\x04' })) {
    test(titled(`1 and a sentence for ${key} at the question for the key`, noTerminal), {
      skip: noTerminal,
    }, async () => {
      const args = ['merchant-account', 'connect', 'stripe', 'typed', '--org', shop.id, '--sandbox']
      const terminal = openTerminal(args, billing.server.env)
      await terminal.untilPrinted(/Secret key: $/)
      terminal.press(pressed)
      assert.equal(await terminal.ended, 1)
      assert.equal(terminal.output(), 'Secret key: \r\nStopped: no secret was entered.\r\n')
    })
  }

  test('2 for a key as an argument, which is not repeated', async () => {
    const { code, stderr } = await run('', KEY)
    assert.deepEqual([code, stderr.includes(KEY)], [2, false], stderr)
    assert.match(stderr, /too many arguments .*sk_test_…/)
  })

  test('1 for no secret, and for a file that cannot be read', async () => {
    assert.equal((await run('\n', '--sandbox')).code, 1)
    assert.match(
      (await run('', '--sandbox', '--from', '/nowhere/key')).stderr,
      /cannot be read: it does not exist \(ENOENT\)/,
    )
  })
})
