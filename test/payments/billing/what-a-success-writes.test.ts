// What a settled charge leaves behind: report row, consumable, data API transaction, totals and events, all or nothing.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startShop } from '../../support/billing.ts'
import { addRow } from '../../support/data.ts'
import type { Json } from '../../support/server.ts'
import { until } from '../../support/time.ts'

// As the specification lists them.
const REPORT_FIELDS = `order_id trx_id amount amount_usd pp_id pp_version is_cit is_fallback threeds_challenge_issued is_vaulted
  pm_data_is_network_tokenized psp_date trx_created_at currency_code status integration_type region psp
  psp_transaction_id psp_merchant_id psp_transaction_type psp_status psp_card_token_type psp_reason_message
  psp_reason_type psp_reason_code psp_reason_decline_type meta_subs_id meta_subs_iteration meta_retry_step
  meta_oneoff_id meta_client_svc_project_id meta_client_svc_session_id meta_client_svc_price_id pm_type
  threeds_protocol_version threeds_response_code threeds_reason_code threeds_reason_text authorization_type
  network pm_data_bin_account_funding_type pm_data_bin_account_number_type pm_data_bin_issuer_name
  pm_data_bin_issuer_country_code pm_data_bin_issuer_currency_code pm_data_bin_prepaid_reloadable_indicator
  pm_data_bin_product_code pm_data_bin_product_name pm_data_bin_product_usage_type
  pm_data_bin_regional_restriction pm_data_expiration_date pm_data_first6 pm_data_last4`

const { billing, shop } = await startShop()

const api = (path: string) => billing.server.api(path, { key: shop.projectKey })

async function events(objectId: string): Promise<Json[]> {
  const rows = await billing.db.query(
    'select type, object_id, sequence, profile_id, data from events where project_id = $1 and object_id = $2 order by sequence',
    [shop.projectId, objectId],
  )
  return rows.map((row) => ({ ...row, data: JSON.parse(row.data!) }))
}

describe('a success', () => {
  test('is reported with every field, in major units with all decimals', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user, { amount: 10.5 })).body
    const response = await shop.post('/transaction_report', { last_transaction_date: '2020-01-01T00:00:00Z', order_id })
    assert.match(response.text, /"amount":10\.50,"amount_usd":10\.50,/)
    const [row] = response.body.transactions
    const { trx_id, trx_created_at, psp_date, psp_transaction_id, ...rest } = row
    for (const id of [trx_id, order_id]) assert.match(id, /^[0-9a-f-]{36}$/)
    for (const time of [trx_created_at, psp_date]) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    assert.match(psp_transaction_id, /^sim_charge_/)
    const known = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
    assert.deepEqual(known, {
      order_id,
      amount: 10.5,
      amount_usd: 10.5,
      currency_code: 'USD',
      status: 'succeeded',
      region: 'eu',
      is_cit: false,
      is_fallback: false,
      is_vaulted: known.is_vaulted,
      psp: 'simulator',
      psp_transaction_type: 'sale',
      psp_merchant_id: 'merchant-1',
      psp_status: known.psp_status,
      psp_card_token_type: known.psp_card_token_type,
      pm_type: 'card',
      threeds_challenge_issued: false,
      authorization_type: known.authorization_type,
      network: 'visa',
      pm_data_is_network_tokenized: false,
      pm_data_bin_account_funding_type: known.pm_data_bin_account_funding_type,
      pm_data_bin_account_number_type: known.pm_data_bin_account_number_type,
      pm_data_bin_issuer_name: known.pm_data_bin_issuer_name,
      pm_data_bin_issuer_country_code: known.pm_data_bin_issuer_country_code,
      pm_data_bin_issuer_currency_code: known.pm_data_bin_issuer_currency_code,
      pm_data_bin_prepaid_reloadable_indicator: known.pm_data_bin_prepaid_reloadable_indicator,
      pm_data_bin_product_code: known.pm_data_bin_product_code,
      pm_data_bin_product_name: known.pm_data_bin_product_name,
      pm_data_bin_product_usage_type: known.pm_data_bin_product_usage_type,
      pm_data_bin_regional_restriction: known.pm_data_bin_regional_restriction,
      pm_data_expiration_date: known.pm_data_expiration_date,
      pm_data_first6: '424242',
      pm_data_last4: '4242',
    })
    assert.deepEqual(Object.keys(row).sort(), REPORT_FIELDS.split(/\s+/).sort())
  })

  test('grants exactly one consumable, and the events have what the API returns', async () => {
    const user = await shop.customer()
    const metadata = { pack: 'x', n: 1 }
    const response = await shop.charge(user, { client_metadata: metadata })
    const { order_id } = response.body
    const [consumable, ...others] = await shop.consumables(user)
    assert.deepEqual(others, [])
    const { consumable_id, granted_at, ...rest } = consumable
    assert.deepEqual(rest, { order_id, amount: 10.5, currency_code: 'USD', is_active: true, revoked_at: null })
    const [charged, ...more] = await events(order_id)
    assert.deepEqual(more, [])
    assert.deepEqual(charged, {
      type: 'charge.succeeded',
      object_id: order_id,
      sequence: '1',
      profile_id: null,
      data: { ...response.body, external_id: user, amount: 10.5, currency_code: 'USD', client_metadata: metadata },
    })
    const [granted] = await events(consumable_id)
    assert.deepEqual([granted.type, granted.data], ['consumable.granted', consumable])
  })

  test('of a linked customer is a transaction of the data API, counted, with its event', async () => {
    const user = await shop.customer({ profileId: 'pro_linked' })
    const before = (await api('/transactions')).body
    await shop.charge(user, { amount: '12', currency_code: 'JPY' })
    const { data, pagination } = (await api('/transactions')).body
    assert.equal(pagination.total, before.pagination.total + 1)
    const [transaction] = data
    const { id, created_at, ...rest } = transaction
    assert.match(id, /^trn_[0-9A-HJKMNP-TV-Z]{26}$/)
    const filled = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
    assert.deepEqual(filled, { profile_id: 'pro_linked', currency: 'JPY', price: 12, sandbox: true })
    const [created] = await events(id)
    assert.deepEqual(
      [created.type, created.profile_id, created.data],
      ['transaction.created', 'pro_linked', transaction],
    )
    const synced = await api(`/transactions?filter[updated_at.from]=${created_at}`)
    assert.deepEqual(synced.body.data, [transaction])
  })

  test('makes no subscription and no one-off purchase', async () => {
    const user = await shop.customer()
    await shop.charge(user)
    const { subscriptions, oneoffs, consumables } = (await shop.post('/my_assets', { external_id: user })).body
    assert.deepEqual([subscriptions, oneoffs, consumables.length], [[], [], 1])
  })
})

test('all or nothing: what cannot be reported is not settled, grants nothing, and comes right when it can be', async () => {
  const other = await billing.organization()
  const user = await other.customer()
  const about = async (table: string) => {
    const [row] = await billing.db.query(`select count(*) as n from ${table} where organization_id = $1`, [other.id])
    return Number(row!.n)
  }
  const [clock] = await billing.db.query(
    'delete from organization_clocks where organization_id = $1 returning last_trx_created_at as at',
    [other.id],
  )
  const body = { idempotency_key: 'unreported' }
  assert.equal((await other.charge(user, body)).body.checkout_status, 'processing')
  assert.equal(await about('consumables'), 0)
  await billing.db.query('insert into organization_clocks values ($1, $2)', [other.id, clock!.at!])
  await billing.db.query(
    `update orders set lease_until = null, next_look_at = db_clock() where organization_id = $1 and status = 'processing'`,
    [other.id],
  )
  const settled = async () => (await other.charge(user, body)).body.checkout_status === 'succeeded'
  await until('the charge to be settled', settled)
  assert.equal((await other.charge(user, body)).body.checkout_status, 'succeeded')
  assert.deepEqual([await about('consumables'), (await other.report({})).length], [1, 2])
})

test('the provider’s call is noted once with the order', async () => {
  for (const [token, outcome] of [
    ['pm_card_visa', 'succeeded'],
    ['pm_card_chargeDeclined', 'failed'],
  ] as const) {
    const { order_id } = (await shop.charge(await shop.customer({ token }))).body
    const notes = await billing.db.query('select call, outcome, refund_id from order_log where order_id = $1', [
      order_id,
    ])
    assert.deepEqual(notes, [{ call: 'charge', outcome, refund_id: null }])
  }
})

test('a decline is reported with its reason, and grants nothing', async () => {
  const user = await shop.customer({ token: 'pm_card_chargeDeclinedExpiredCard', profileId: 'pro_declined' })
  const { order_id, failed_message_for_user } = (await shop.charge(user)).body
  const [row] = await shop.report({ order_id })
  assert.deepEqual(
    [row.status, row.psp_transaction_type, row.psp_reason_code, row.psp_reason_decline_type],
    ['failed', 'sale', 'expired_card', 'hard'],
  )
  assert.deepEqual(await shop.consumables(user), [])
  const [failed] = await events(order_id)
  assert.deepEqual([failed.type, failed.data.failed_message_for_user], ['charge.failed', failed_message_for_user])
  const { data } = (await api('/transactions')).body
  assert.ok(!data.some((one: Json) => one.profile_id === 'pro_declined'))
})

test('my_assets: newest first; an unknown customer, and another organization’s, owns nothing', async () => {
  const user = await shop.customer()
  const orders = []
  for (let n = 0; n < 3; n++) orders.unshift((await shop.charge(user)).body.order_id)
  assert.deepEqual(
    (await shop.consumables(user)).map((one) => one.order_id),
    orders,
  )
  const empty = { subscriptions: [], oneoffs: [], consumables: [] }
  assert.deepEqual((await shop.post('/my_assets', { external_id: 'nobody' })).body, empty)
  const other = await billing.organization()
  assert.deepEqual((await other.post('/my_assets', { external_id: user })).body, empty)
  assert.equal((await shop.post('/my_assets', {})).status, 400)
  assert.equal((await shop.post('/my_assets', { external_id: user, limit: 1 })).status, 400)
})

test('the transaction of a merchant account that is no sandbox is not one either', async () => {
  const real = await shop.customer({ profileId: 'pro_real', merchantId: 'real-money' })
  const account = { organization_id: shop.id, psp: 'simulator', psp_merchant_id: 'real-money', is_sandbox: false }
  await addRow(billing.db, 'merchant_accounts', account)
  await shop.charge(real)
  const rows = await billing.db.query(`select sandbox from transactions where profile_id = 'pro_real'`)
  assert.deepEqual(rows, [{ sandbox: 'f' }])
})
