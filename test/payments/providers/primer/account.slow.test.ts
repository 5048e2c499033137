// A Primer account from its connection to the end: connect and doctor, report fields, reconcile, and erasure at the provider.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { setOrganization } from '../../../../src/core/tenants/tenants.ts'
import { billingContext } from '../../../../src/payments/billing/context.ts'
import { reconcile } from '../../../../src/payments/billing/reconcile/reconcile.ts'
import { connectAccount } from '../../../../src/payments/providers/connect.ts'
import { addPayment } from '../../../support/billing.ts'
import { tundish } from '../../../support/cli.ts'
import { PRIMER_MERCHANT, PRIMER_SECRET, setUpPrimerShop } from '../../../support/primer-billing.ts'
import { PRIMER_KEY } from '../../../support/simulators.ts'
import { until } from '../../../support/time.ts'

const setup = setUpPrimerShop()
const { charged, isActive, rowsOf } = setup
const run = (args: string[], input?: string) => tundish(args, setup.billing.server.env, input)

test("a decline has the sentence of Primer's reason, and none tells of a lost card", async () => {
  const sentences: Record<string, string> = {
    tok_insufficient_funds: 'Your card has insufficient funds.',
    tok_expired_card: 'Your card has expired.',
    tok_lost_card: 'Your card was declined.',
    tok_needs_action: 'Your bank asks you to confirm the payment, which is not possible here. Please use another card.',
  }
  for (const [token, sentence] of Object.entries(sentences)) {
    const { user } = await setup.account.customer(token)
    const { body } = await setup.shop.charge(user)
    assert.deepEqual([body.checkout_status, body.failed_message_for_user], ['failed', sentence], token)
  }
})

describe('connect and doctor', () => {
  const post = async (path: string, body?: object) => {
    const { admin } = setup.billing.server
    const response = await admin(`/organizations/${setup.shop.id}/merchant-accounts/primer/${path}`, {
      ...{ method: 'POST', ...(body && { body }) },
    })
    return { ...response, code: response.headers['x-error-code'] }
  }

  test('200 with the end of the key, the currencies and the path of the webhooks, and never the secrets', async () => {
    const response = await post('new/connect', {
      sandbox: true,
      secret_key: PRIMER_KEY,
      webhook_secrets: [PRIMER_SECRET],
    })
    const { key_last4, webhook_secrets, currencies, notifications_path, provider_account } = response.body
    assert.deepEqual([response.status, key_last4, webhook_secrets, provider_account], [200, '0001', 1, null])
    assert.equal(notifications_path, `/${setup.shop.id}/v1/providers/primer/new/events`)
    assert.ok(currencies.includes('USD') && !currencies.includes('HUF'), currencies.join())
    const stored = JSON.stringify(await setup.billing.db.query('select * from merchant_accounts'))
    for (const secret of [PRIMER_KEY, PRIMER_SECRET]) assert.ok(!(response.text + stored).includes(secret))
  })

  const refused: Record<string, [body: object, status: number, code: string]> = {
    'a text that is no key': [{ secret_key: 'short' }, 400, 'invalid_value'],
    'a webhook secret that is too short': [{ secret_key: PRIMER_KEY, webhook_secrets: ['x'] }, 400, 'invalid_value'],
    'a key that was revoked': [{ secret_key: 'revoked-primer-key-0001' }, 400, 'credentials_refused'],
  }
  for (const [what, [body, status, code]] of Object.entries(refused))
    test(`${status} ${code} for ${what}, and nothing is stored`, async () => {
      await setup.primer.control('/keys/revoke', { key: 'revoked-primer-key-0001' })
      const response = await post('refused/connect', { sandbox: true, ...body })
      assert.deepEqual([response.status, response.code], [status, code], response.text)
      const found = await setup.billing.db.query(`select from merchant_accounts where psp_merchant_id = 'refused'`)
      assert.equal(found.length, 0)
    })

  test('409 wrong_mode for one of two processes that connect an account in different modes at once', async () => {
    const name = { organizationId: setup.shop.id, psp: 'primer', merchantId: 'both' }
    const context = { ...setup.billing.server.app, stripeApiUrl: undefined, deadlineMs: 10_000 }
    const connect = (url: string, isSandbox: boolean) =>
      connectAccount({ ...context, apiUrls: { primer: url } }, name, { secretKey: PRIMER_KEY, isSandbox })
    // The other process connects the account while the provider is asked about the key of this one.
    const between = createServer((_request, response) => {
      connect(setup.primer.url, true).then(() => response.end('{"data":[]}'))
    })
    await new Promise<void>((listening) => between.listen(0, '127.0.0.1', listening))
    const { port } = between.address() as AddressInfo
    await assert.rejects(connect(`http://127.0.0.1:${port}`, false), { code: 'wrong_mode' })
    between.closeAllConnections()
    between.close()
    const [row] = await setup.billing.db.query(
      `select is_sandbox from merchant_accounts where psp_merchant_id = 'both'`,
    )
    assert.equal(row!.is_sandbox, 't')
  })

  test('the command keeps the stored key for the line -, and stores the secrets after it', async () => {
    const args = ['merchant-account', 'connect', 'primer', 'piped', '--org', setup.shop.id, '--sandbox', '--json']
    const first = await run(args, `${PRIMER_KEY}\n${PRIMER_SECRET}\n`)
    assert.equal(first.code, 0, first.stderr)
    const second = await run(args, `-\nwebhook-secret-0002\n${PRIMER_SECRET}\n`)
    const { key_last4, webhook_secrets } = JSON.parse(second.stdout)
    assert.deepEqual([key_last4, webhook_secrets], ['0001', 2], second.stderr)
    assert.ok(!(first.stdout + second.stdout).includes(PRIMER_KEY))
  })

  test('doctor reports a key that was revoked', async () => {
    await post('doomed/connect', {
      sandbox: true,
      secret_key: 'doomed-primer-key-0001',
      webhook_secrets: [PRIMER_SECRET],
    })
    const finding = async () => {
      const { findings } = JSON.parse((await run(['doctor', '--json'])).stdout)
      return findings.find(({ message }: { message: string }) => message.includes('primer doomed')).level
    }
    assert.equal(await finding(), 'ok')
    await setup.primer.control('/keys/revoke', { key: 'doomed-primer-key-0001' })
    assert.notEqual(await finding(), 'ok')
    await post('doomed/disconnect')
  })
})

describe('the report', () => {
  const only = async (orderId: string) => setup.shop.report({ order_id: orderId })

  test('a charge has the fields of its card, BIN and 3-D Secure', async () => {
    const { orderId, payment } = await charged()
    const [row] = await only(orderId)
    const told = {
      ...{ psp: 'primer', psp_merchant_id: PRIMER_MERCHANT, psp_transaction_id: payment, psp_status: 'SETTLED' },
      ...{ psp_card_token_type: 'CARD_PAN', is_fallback: false, is_cit: false, is_vaulted: true },
      ...{ authorization_type: 'FINAL', pm_type: 'PAYMENT_CARD', threeds_response_code: 'NOT_PERFORMED' },
      ...{ network: 'Visa', pm_data_first6: '411111', pm_data_last4: '1111', pm_data_expiration_date: '12/2034' },
      ...{ pm_data_is_network_tokenized: false, pm_data_bin_issuer_country_code: 'US' },
      ...{ pm_data_bin_account_funding_type: 'CREDIT', pm_data_bin_product_name: 'VISA CLASSIC' },
    }
    for (const [field, value] of Object.entries(told)) assert.equal(row![field], value, field)
  })

  test('an attempt that failed inside the payment is a row before that of its fallback', async () => {
    const { orderId } = await charged('tok_fallback')
    const rows = (await only(orderId)).map((row) => [row.status, row.is_fallback, row.psp_reason_code, row.psp_status])
    assert.deepEqual(rows, [
      ['failed', false, 'DECLINED', 'DECLINED'],
      ['succeeded', true, null, 'SETTLED'],
    ])
  })

  test('a decline has its reason, whether it is hard, and a sentence for the user', async () => {
    const { user } = await setup.account.customer('tok_expired_card')
    const { body } = await setup.shop.charge(user)
    const [row] = await only(body.order_id)
    const reasons = [row!.psp_reason_type, row!.psp_reason_code, row!.psp_reason_decline_type]
    assert.deepEqual([body.checkout_status, ...reasons], ['failed', 'ISSUER_DECLINED', 'EXPIRED_CARD', 'hard'])
  })
})

describe('reconcile', () => {
  const differences = async () => {
    const { app } = setup.billing.server
    const { findings } = await reconcile(billingContext(app), '2020-01-01T00:00:00Z')
    return findings.map(({ difference, reference }) => `${difference} ${reference}`)
  }

  test('a refund made at Primer whose webhook was lost is found', async () => {
    const { user, orderId, payment } = await charged()
    await setup.primer.control('/events', { isOff: true })
    await setup.primer.control('/refunds', { id: payment })
    await setup.primer.control('/events', { isOff: false })
    assert.equal(await isActive(user), true)
    await differences()
    assert.deepEqual(await rowsOf(orderId), ['sale succeeded 10.5', 'refund refunded 10.5'])
    assert.deepEqual(await differences(), [])
  })

  test('a charge that is missing here, and one that is missing there, are named', async () => {
    const { orderId: gone } = await charged()
    const { orderId: never } = await charged()
    for (const table of ['consumables', 'order_log', 'orders'])
      await setup.billing.db.query(`delete from ${table} where order_id = $1`, [gone])
    await setup.billing.db.query(
      `update orders set provider_key = repeat('f', 64), charge_transaction_id = null where order_id = $1`,
      [never],
    )
    const found = await differences()
    assert.ok(found.includes(`missing_here ${gone}`) && found.includes(`missing_there ${never}`), found.join('\n'))
  })
})

describe('erasure at Primer', () => {
  let made = 0
  const person = () => setup.account.customer('tok_visa', `erased_${++made}`)
  const tokensOf = async (customer: string) => {
    const { body } = await setup.primer.call('GET', `/payment-instruments?customer_id=${customer}`)
    return (body['data'] as { token: string }[]).map(({ token }) => token)
  }
  const receipt = async (profileId: string) => {
    const { admin } = setup.billing.server
    return (await admin(`/projects/${setup.shop.projectId}/erasures/${profileId}`)).body.at_provider
  }
  async function erase(profileId: string) {
    await setOrganization(setup.billing.db, setup.shop.id, { eraseAtProvider: 'on' })
    const call = { key: setup.shop.projectKey, method: 'POST', body: { profile_ids: [profileId] } }
    assert.equal((await setup.billing.server.api('/profiles/anonymize', call)).status, 200)
    await until('the end of the erasure', async () =>
      (await receipt(profileId)).every((one: { status: string }) => one.status !== 'pending'),
    )
    return (await receipt(profileId)).map((one: { target: string; status: string }) => [one.target, one.status])
  }
  const paid = async (user: string, columns: Record<string, string | null>) => {
    const id = await addPayment(setup.billing.db, setup.shop.id, user, { psp: 'primer', merchantId: PRIMER_MERCHANT })
    for (const [column, value] of Object.entries(columns))
      await setup.billing.db.query(`update report_transactions set ${column} = $2 where order_id = $1`, [id, value])
  }

  test('a customer whose id is stored, in any form, loses every saved payment method', async () => {
    const { user, customer } = await person()
    await setup.primer.control('/tokens', { token: 'tok_visa~second', customer })
    await setup.billing.db.query('update report_transactions set psp_customer_id = $2 where external_id = $1', [
      user,
      customer,
    ])
    assert.deepEqual(await erase(`erased_${made}`), [[customer, 'done']])
    assert.deepEqual(await tokensOf(customer), [])
    assert.equal((await setup.shop.charge(user)).body.message, 'The customer has no saved card.')
  })

  test('a customer whose id is not stored is found by a payment with the card', async () => {
    const { user, card, customer } = await person()
    await setup.primer.control('/tokens', { token: `tok_visa~more_${made}`, customer })
    assert.equal((await setup.shop.charge(user)).body.checkout_status, 'succeeded')
    await setup.billing.db.query('update report_transactions set psp_customer_id = null where external_id = $1', [user])
    await setup.billing.db.query('update orders set provider_customer = null where external_id = $1', [user])
    await setup.billing.db.query('delete from provider_customers where external_id = $1', [user])
    assert.deepEqual(await erase(`erased_${made}`), [[card, 'done']])
    assert.deepEqual(await tokensOf(customer), [])
  })

  test('a payment without a card leads to the customer', async () => {
    const profileId = `erased_${++made}`
    const user = await setup.shop.customer({ profileId, token: null, psp: 'primer', merchantId: PRIMER_MERCHANT })
    const given = { orderId: 'theirs', amount: 5, currencyCode: 'USD', paymentMethodToken: 'tok_visa~theirs' }
    const { body } = await setup.primer.call('POST', '/payments', { ...given, customerId: 'person-theirs' })
    await paid(user, { payment_method_token: null, psp_transaction_id: String(body['id']) })
    assert.deepEqual(await erase(profileId), [[body['id'], 'done']])
    assert.deepEqual(await tokensOf('person-theirs'), [])
  })

  test('a card whose customer is found nowhere is deleted by its token', async () => {
    const { card, customer } = await person()
    assert.deepEqual(await erase(`erased_${made}`), [[card, 'done']])
    assert.deepEqual(await tokensOf(customer), [])
  })

  test('it is repeated after Primer failed', async () => {
    const { user, customer } = await person()
    await setup.billing.db.query('update report_transactions set psp_customer_id = $2 where external_id = $1', [
      user,
      customer,
    ])
    await setup.primer.control('/faults', {
      method: 'DELETE',
      path: '/payment-instruments/.*',
      kind: 'error_after',
      times: 1,
    })
    const hurry = setInterval(
      () =>
        void setup.billing.db
          .query('update provider_erasures set next_attempt_at = db_clock() where why is not null and done_at is null')
          .catch(() => {}),
      200,
    )
    assert.deepEqual(await erase(`erased_${made}`), [[customer, 'done']])
    clearInterval(hurry)
    assert.deepEqual(await tokensOf(customer), [])
  })
})
