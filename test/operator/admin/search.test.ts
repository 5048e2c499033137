// Search by any id that a customer, an analyst or the provider's pages can quote.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldBatch } from '../../../src/core/records/folded-emails.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { recordDispute } from '../../../src/payments/billing/ledger/disputes.ts'
import { payCharge } from '../../payments/billing/paid-charge.ts'
import { startShop } from '../../support/billing.ts'
import { insert } from '../../support/data.ts'
import { until } from '../../support/time.ts'

const { billing, shop } = await startShop()
const charge = await payCharge(billing, shop)

interface Found {
  kind: string
  id: string
  project_id: string
  order_id: string | null
  profile_id: string | null
  status: string | null
}

async function search(q: string): Promise<Found[]> {
  const { status, body } = await billing.server.admin(`/search?q=${encodeURIComponent(q)}`)
  assert.equal(status, 200)
  return body.results
}

test('the provider’s id of a charge finds its order', async () => {
  const [{ kind, id, order_id, project_id }, ...others] = (await search(charge.transactionId)) as [Found]
  assert.deepEqual([kind, id, order_id, project_id], ['order', charge.orderId, charge.orderId, shop.projectId])
  assert.deepEqual(others, [])
})

test('a refund is found by its id and by the provider’s, and names its order', async () => {
  const { refund_id } = (await shop.refund(charge.user, charge.orderId, { amount: 4, idempotency_key: 'part' })).body
  const [row] = await billing.db.query('select provider_transaction_id from refunds where refund_id = $1', [refund_id])
  for (const q of [refund_id, row!.provider_transaction_id!]) {
    const [{ kind, id, order_id }, ...others] = (await search(q)) as [Found]
    assert.deepEqual([kind, id, order_id, others], ['refund', refund_id, charge.orderId, []], q)
  }
})

test('a dispute is found by the provider’s id, and names its order', async () => {
  await recordDispute(
    billingContext(billing.server.app),
    { organization_id: shop.id, order_id: charge.orderId },
    {
      disputeId: 'dp_4711',
      chargeTransactionId: charge.transactionId,
      status: 'open',
      fundsWithdrawn: false,
      reinstatedMinor: 0n,
      amountMinor: 650n,
      currencyCode: 'USD',
      reason: 'fraudulent',
      at: '2026-01-31T22:00:00Z',
    },
  )
  const [{ kind, id, order_id, status }, ...others] = (await search('dp_4711')) as [Found]
  assert.deepEqual([kind, id, order_id, status, others], ['dispute', 'dp_4711', charge.orderId, 'open', []])
})

test('sessions, transactions and rows of the payment report are found by their ids, and name the person', async () => {
  const project = { id: shop.projectId, organizationId: shop.id }
  const profile_id = 'profile-ada'
  const customer = await shop.customer({ profileId: profile_id })
  await insert(billing.db, project, {
    sessions: [{ id: 'session-ada', profile_id }],
    transactions: [{ id: 'ch_ada', profile_id }],
  })
  const [payment] = await billing.db.query('select trx_id from report_transactions where external_id = $1', [customer])
  for (const [kind, id] of Object.entries({
    session: 'session-ada',
    transaction: 'ch_ada',
    payment: payment!.trx_id!,
  })) {
    const [one, ...others] = (await search(id)) as [Found]
    assert.deepEqual([one.kind, one.id, one.profile_id, others], [kind, id, profile_id, []])
  }
})

test('the provider’s id of an imported payment or refund finds it, and names the person', async () => {
  const customer = await shop.customer({ profileId: 'profile-eve' })
  const ids = { pi_declined: '01900000-0000-7000-8000-00000000000a', re_back: '01900000-0000-7000-8000-00000000000b' }
  await billing.db.query(
    `insert into report_transactions select (json_populate_record(r, json_build_object('trx_id', n.id,
       'trx_created_at', r.trx_created_at + n.place * interval '1 second', 'psp_transaction_id', n.psp_id, 'imported', true))).*
     from report_transactions r, unnest($2::text[], $3::text[]) with ordinality n (psp_id, id, place) where r.external_id = $1`,
    [customer, Object.keys(ids), Object.values(ids)],
  )
  for (const [q, id] of Object.entries(ids)) {
    const [one, ...others] = (await search(q)) as [Found]
    assert.deepEqual([one.kind, one.id, one.profile_id, others], ['payment', id, 'profile-eve', []], q)
  }
})

test('a customer is found by the e-mail address as profiles are, whatever the locale of the database', async () => {
  const emails = ['İpek@example.com', 'ΣΊΣΥΦΟΣ@example.gr', 'STRAẞE+a@example.de']
  await insert(
    billing.db,
    { id: shop.projectId, organizationId: shop.id },
    {
      customers: emails.map((email, n) => ({ external_id: `mail-${n}`, email })),
    },
  )
  // As an earlier version stored it.
  await billing.db.query(`update customers set email_folded = null where external_id = 'mail-1'`)
  const found = async (q: string) => (await search(q)).map(({ id }) => id)
  await until('the old row', async () => {
    await foldBatch(billing.db)
    return (await found('σίσυφος@example.gr')).length > 0
  })
  assert.deepEqual(await found('σίσυφος@example.gr'), ['mail-1'])
  assert.deepEqual(await found('ipek@example.com'), [])
  assert.deepEqual(await found('İPEK@EXAMPLE.COM'), ['mail-0'])
  assert.deepEqual(await found('straße+a@example.de'), ['mail-2'])
  assert.deepEqual(await found('straße a@example.de'), ['mail-2'])
})

test('a person is found by any part of the address before the @, in their project only, with an index', async () => {
  const own = await billing.organization()
  const other = await billing.organization()
  const people = ['anna.sophie-marie@example.com', "o'neil_sophie@example.com", 'paul@sophie.example']
  await insert(
    billing.db,
    { id: own.projectId, organizationId: own.id },
    { profiles: people.map((email, n) => ({ id: `person-${n}`, email })) },
  )
  await insert(
    billing.db,
    { id: other.projectId, organizationId: other.id },
    { profiles: [{ id: 'elsewhere', email: 'sophie.martin@example.com' }] },
  )
  const ids = async (q: string) => (await search(q)).map(({ id }) => id).sort()
  assert.deepEqual(await ids('Soph'), ['elsewhere', 'person-0', 'person-1'])
  assert.deepEqual(await ids('sophie mar'), ['elsewhere', 'person-0'])
  assert.deepEqual(await ids("o'ne"), ['person-1'])
  assert.deepEqual(await ids('phi'), ['elsewhere', 'person-0', 'person-1'])
  assert.deepEqual(await ids('NNA ie'), ['person-0'])
  // Three letters of each are there, but not in this order.
  assert.deepEqual(await ids('sophiesoph'), [])
  for (const q of ['so', 'a b', "soph' | 'x", '\\\\sop', "'':*", 'so%hie', 's*phie', '%%%'])
    assert.deepEqual(await ids(q), [], q)
  const plan = await billing.db.tx(async (query) => {
    await query('set local enable_seqscan = off')
    return query(`explain select id from profiles f where f.email_folded is not null
      and parts_of_address(f.project_id, f.email_folded) @@ '''x phi'''::tsquery and f.project_id || '' = 'x'`)
  })
  assert.match(JSON.stringify(plan), /profiles_by_parts/)
})

test('parts of an address with accents are found without them; an erased or changed address is not found', async () => {
  const own = await billing.organization()
  const project = { id: own.projectId, organizationId: own.id }
  const emails = ['zoë.muñoz@example.com', 'ZWEITENS@example.com']
  await insert(billing.db, project, { profiles: emails.map((email, n) => ({ id: `accent-${n}`, email })) })
  const ids = async (q: string) => (await search(q)).map(({ id }) => id).sort()
  assert.deepEqual(await ids('unoz'), ['accent-0'])
  assert.deepEqual(await ids('MUÑ'), ['accent-0'])
  assert.deepEqual(await ids('eiten'), ['accent-1'])
  await billing.db.query(`update profiles set email = null, email_folded = null where project_id = $1`, [project.id])
  assert.deepEqual(await ids('unoz'), [])
  const [left] = await billing.db.query(
    `select count(*) as rows from profiles where project_id = $1 and parts_of_address(project_id, email_folded) is not null`,
    [project.id],
  )
  assert.equal(left!.rows, '0')
})
