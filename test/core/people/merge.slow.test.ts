// Merging two profiles of one person: what moves, what an id means afterwards, and how it is asked for.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { reapply } from '../../../src/core/erasure/erasure.ts'
import { readLedgers } from '../../../src/core/erasure/ledger-files.ts'
import { createOrganization, createProject } from '../../../src/core/tenants/tenants.ts'
import { assertCounted } from '../../data/ingest/counters.ts'
import { noTerminal, openTerminal, tundish } from '../../support/cli.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { insert } from '../../support/data.ts'
import { untilLocked } from '../../support/database.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Line, line, textOf, uuid } from '../../support/imports.ts'
import type { Project } from '../../support/server.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('write')

async function bring(shop: Project, lines: Line[], query = '') {
  const response = await dashboard.server.admin(`/projects/${shop.id}/import${query}`, {
    method: 'POST',
    body: textOf(lines),
    headers: ['Content-Type', 'application/x-ndjson'],
  })
  assert.equal(response.status, 200, response.text)
  return response.body
}

const DAY = '2026-01-02T10:00:00Z'

/** `pro_ada` visited, and `cus_ada` paid at the provider. */
async function shopWith(...more: Line[]): Promise<Project> {
  const shop = await dashboard.server.project()
  await bring(shop, [
    line.funnel({ id: 'quiz' }),
    line.product(),
    line.profile({ id: 'pro_ada', funnel_id: 'quiz', country: 'DE', integrations: { crm: 'a' } }),
    line.session({ id: 'ses_ada', profile_id: 'pro_ada', funnel_id: 'quiz', created_at: DAY, ip: undefined }),
    line.profile({
      id: 'cus_ada',
      email: 'ada@example.com',
      phone: '+49',
      country: 'FR',
      integrations: { stripe: 'b' },
    }),
    line.session({ id: 'ses_two', profile_id: 'cus_ada', created_at: DAY }),
    line.subscription({ profile_id: 'cus_ada', session_id: 'ses_ada', created_at: DAY }),
    line.transaction({ profile_id: 'cus_ada', subscription_id: 'subscription', created_at: DAY }),
    line.customer({ external_id: `user-${shop.id}`, profile_id: 'cus_ada', email: 'ada@example.com' }),
    line.payment({ external_id: `user-${shop.id}`, trx_id: uuid(++payments), trx_created_at: DAY }),
    ...more,
  ])
  return shop
}
let payments = 7000

const merge = (shop: Project, from: string, into: string) =>
  dashboard.server.admin(`/projects/${shop.id}/profiles/${from}/merge/${into}`, { method: 'POST' })
const preview = (shop: Project, from: string, into: string) =>
  dashboard.server.admin(`/projects/${shop.id}/profiles/${from}/merge/${into}`)
const personOf = async (shop: Project, id: string) =>
  (await dashboard.server.admin(`/projects/${shop.id}/profiles/${id}`)).body
const get = async (shop: Project, path: string) => (await shop.get(path)).body
const owners = async (shop: Project) => {
  const { sessions, subscriptions, transactions, customers } = await personOf(shop, 'pro_ada')
  return [sessions, subscriptions, transactions, customers].map((all) => all.length)
}

test('everything moves in one transaction, the remaining profile gets what it lacks, and figures and counters are exact', async () => {
  const shop = await shopWith()
  await assertExact(dashboard.server.db, shop.id)
  const paid = async () => (await figuresOf(dashboard.server.db, shop.id, 'paid'))[0]?.paid
  assert.equal(Number(await paid()), 0)
  const counted = { from: 'cus_ada', into: 'pro_ada', sessions: 1, subscriptions: 1, transactions: 1, customers: 1 }
  assert.deepEqual((await preview(shop, 'cus_ada', 'pro_ada')).body, counted)
  assert.deepEqual(await owners(shop), [1, 0, 0, 0])
  const { status, body } = await merge(shop, 'cus_ada', 'pro_ada')
  assert.deepEqual([status, body], [200, counted])
  assert.deepEqual(await owners(shop), [2, 1, 1, 1])

  const { email, phone, country, funnel_id, integrations } = await get(shop, '/profiles/pro_ada')
  assert.deepEqual(
    { email, phone, country, funnel_id, integrations },
    {
      email: 'ada@example.com',
      phone: '+49',
      country: 'DE',
      funnel_id: 'quiz',
      integrations: { stripe: 'b', crm: 'a' },
    },
  )
  const left = await get(shop, '/profiles/cus_ada')
  assert.deepEqual([left.email, left.phone, left.integrations], [null, null, {}])
  assert.ok(left.anonymized_at)
  assert.equal((await personOf(shop, 'cus_ada')).profile.merged_into, 'pro_ada')
  assert.deepEqual((await personOf(shop, 'pro_ada')).profile.also_known_as, ['cus_ada'])
  await assertExact(dashboard.server.db, shop.id)
  assert.equal(Number(await paid()), 1)
  await assertCounted(dashboard.server.db, shop)
  const entries = (await dashboard.server.admin('/audit?limit=2')).body.data
  assert.deepEqual(
    entries.map(({ action }: { action: string }) => action),
    ['profiles.merged', 'profile.merge_asked'],
  )
})

test('a sync sees everything that moved', async () => {
  const shop = await shopWith()
  const [{ now }] = (await dashboard.server.db.query('select db_clock() as now')) as [{ now: string }]
  await merge(shop, 'cus_ada', 'pro_ada')
  const from = { 'filter[updated_at.from]': new Date(now).toISOString() }
  const changed = async (list: string) =>
    (await shop.get(`/${list}`, from)).body.data.map(({ id }: { id: string }) => id).sort()
  assert.deepEqual(
    [await changed('profiles'), await changed('sessions'), await changed('subscriptions')],
    [['cus_ada', 'pro_ada'], ['ses_two'], ['subscription']],
  )
  const [row] = await dashboard.server.db.query(
    'select updated_at > $2 as stamped from transactions where project_id = $1',
    [shop.id, now],
  )
  assert.equal(row?.stamped, 't')
})

test('later lines that name the merged profile are lines of the other; one about it is skipped', async () => {
  const shop = await shopWith(line.profile({ id: 'pro_old', email: 'old@example.com' }))
  await merge(shop, 'pro_old', 'cus_ada')
  await merge(shop, 'cus_ada', 'pro_ada')
  const counts = await bring(shop, [
    line.profile({ id: 'cus_ada', email: 'again@example.com' }),
    line.profile({ id: 'pro_old', email: 'again@example.com' }),
    line.session({ id: 'ses_late', profile_id: 'pro_old', user_agent: 'late' }),
    line.transaction({ id: 'trn_late', profile_id: 'cus_ada' }),
    line.customer({ external_id: `late-${shop.id}`, profile_id: 'cus_ada' }),
  ])
  assert.deepEqual([counts.read, counts.written, counts.skipped, counts.rejected], [5, 3, 2, 0])
  assert.deepEqual(await owners(shop), [3, 1, 2, 2])
  assert.equal((await get(shop, '/profiles/cus_ada')).email, null)
})

for (const id of ['pro_ada', 'cus_ada']) {
  test(`an erasure of ${id}, one of two merged profiles, erases the person, and later lines of both`, async () => {
    const shop = await shopWith()
    await merge(shop, 'cus_ada', 'pro_ada')
    const { status, body } = await shop.post('/profiles/anonymize', { profile_ids: [id] })
    assert.deepEqual([status, body.message], [200, '1 profile anonymized.'])
    await bring(shop, [
      line.session({ id: 'ses_late', profile_id: 'cus_ada', user_agent: 'Mozilla' }),
      line.customer({ external_id: `late-${shop.id}`, profile_id: 'cus_ada', email: 'ada@example.com' }),
    ])
    assert.equal((await get(shop, '/profiles/pro_ada')).email, null)
    assert.equal((await get(shop, '/sessions/ses_late')).user_agent, null)
    const [row] = await dashboard.server.db.query(
      'select count(email) as emails, count(*) as n from customers where project_id = $1',
      [shop.id],
    )
    assert.deepEqual([row?.emails, row?.n], ['0', '2'])
    const events = await dashboard.server.db.query(
      `select from events where project_id = $1 and data::text like '%ada@example.com%'`,
      [shop.id],
    )
    assert.equal(events.length, 0)
  })
}

test('after a restore of a backup without the merge, the ledger erases both profiles', async () => {
  const shop = await shopWith()
  await merge(shop, 'cus_ada', 'pro_ada')
  await shop.post('/profiles/anonymize', { profile_ids: ['pro_ada'] })
  const restored = await startDashboard()
  try {
    const { db, seal } = restored.server.app
    await createOrganization(db, seal, { id: shop.organizationId })
    await createProject(db, seal, { id: shop.id, organization: shop.organizationId })
    await insert(db, shop, {
      profiles: [
        { id: 'pro_ada', country: 'DE' },
        { id: 'cus_ada', email: 'ada@example.com' },
      ],
    })
    await reapply(db, restored.server.ledger, readLedgers([dashboard.server.ledger], []))
    const rows = await db.query('select id from profiles where project_id = $1 and anonymized_at is null', [shop.id])
    assert.deepEqual(rows, [])
  } finally {
    await restored.stop()
  }
})

test('after a restore of a backup with the merge, an erasure of the merged profile made before it reaches the other', async () => {
  const shop = await shopWith()
  await merge(shop, 'cus_ada', 'pro_ada')
  const erased = { project_id: shop.id, profile_id: 'cus_ada', erased_at: '2026-02-01T00:00:00.000000Z' }
  const entries = (async function* () {
    yield erased
  })()
  const { db, ledger } = dashboard.server
  assert.deepEqual(await reapply(db, ledger, entries), { erased: 1, already_erased: 1, unknown: 0 })
  assert.equal((await get(shop, '/profiles/pro_ada')).email, null)
  const known = await db.query('select profile_id from erasures where project_id = $1 order by 1', [shop.id])
  assert.deepEqual(
    known.map(({ profile_id }) => profile_id),
    ['cus_ada', 'pro_ada'],
  )
})

test('a charge that settles for a former profile adds its transaction to the remaining one', async () => {
  const shop = await shopWith()
  const { db } = dashboard.server
  await merge(shop, 'cus_ada', 'pro_ada')
  const { addTransactions, transactionOf } = await import('../../../src/payments/billing/ledger/data-transaction.ts')
  await db.tx(async (query) => {
    const [{ stamp }] = (await query('select begin_write($1) as stamp', [shop.id])) as [{ stamp: string }]
    const read = { project_id: shop.id, profile_id: 'cus_ada', is_sandbox: false, currency_code: 'USD' } as const
    await addTransactions(query, [transactionOf({ ...read, priceMinor: 500n, usdMinor: 500n, psp_date: null, stamp })])
  })
  assert.deepEqual(await owners(shop), [2, 1, 2, 1])
})

const REFUSED: Record<string, [from: string, into: string, status: number, why: RegExp]> = {
  itself: ['pro_ada', 'pro_ada', 409, /cannot be merged into itself/],
  'a profile that does not exist': ['pro_ada', 'nobody', 404, /There is no profile "nobody"/],
  'an erased profile': ['pro_ada', 'pro_gone', 409, /"pro_gone" is erased/],
  'a profile that was merged': ['pro_ada', 'pro_was', 409, /"pro_was" was merged into "cus_ada"/],
}
for (const [what, [from, into, status, why]] of Object.entries(REFUSED)) {
  test(`${status} for a merge into ${what}; nothing is moved`, async () => {
    const shop = await shopWith(line.profile({ id: 'pro_gone' }), line.profile({ id: 'pro_was' }))
    await shop.post('/profiles/anonymize', { profile_ids: ['pro_gone'] })
    await merge(shop, 'pro_was', 'cus_ada')
    for (const response of [await merge(shop, from, into), await preview(shop, from, into)]) {
      assert.equal(response.status, status)
      assert.match(response.body.message, why)
    }
    assert.deepEqual(await owners(shop), [1, 0, 0, 0])
  })
}

test('a merge waits for an import that has checked its lines', async () => {
  const shop = await shopWith()
  const { db } = dashboard.server
  const held = await db.connect()
  await held.query('begin')
  await held.query('select pg_advisory_xact_lock(7486, hashtext($1))', [shop.organizationId])
  const merging = merge(shop, 'cus_ada', 'pro_ada')
  await untilLocked(db.query)
  assert.deepEqual(await owners(shop), [1, 0, 0, 0])
  await held.query('commit')
  held.release()
  assert.equal((await merging).status, 200)
})

test('2 for `profile merge` without a terminal; with --yes it merges', async () => {
  const shop = await shopWith()
  const command = ['profile', 'merge', 'cus_ada', 'pro_ada', '--project', shop.id]
  const asked = await tundish(command, dashboard.server.env)
  assert.equal(asked.code, 2)
  assert.match(asked.stderr, /no terminal to ask for confirmation: add --yes/)
  assert.deepEqual(await owners(shop), [1, 0, 0, 0])
  const done = await tundish([...command, '--yes', '--json'], dashboard.server.env)
  assert.deepEqual([done.code, JSON.parse(done.stdout).subscriptions], [0, 1])
  assert.deepEqual(await owners(shop), [2, 1, 1, 1])
})

test('on a terminal `profile merge` asks', { skip: noTerminal }, async () => {
  const shop = await shopWith()
  const ask = async (response: string) => {
    const command = ['profile', 'merge', 'cus_ada', 'pro_ada', '--project', shop.id]
    const terminal = openTerminal(command, dashboard.server.env)
    await terminal.untilPrinted(
      /sessions 1, subscriptions 1, transactions 1, billing customers 1\.\s[\s\S]+Type "yes" to go on: /,
    )
    terminal.press(`${response}\r`)
    return terminal.ended
  }
  assert.equal(await ask('no'), 1)
  assert.deepEqual(await owners(shop), [1, 0, 0, 0])
  assert.equal(await ask('yes'), 0)
  assert.deepEqual(await owners(shop), [2, 1, 1, 1])
})

test('the page of a person has a form that merges a twin, and the merged one leads to the other', async () => {
  const shop = await shopWith()
  const page = await dashboard.visit(`/people/pro_ada?project=${shop.id}`, { cookie })
  assert.match(page.text, /action="\/people\/cus_ada\/merge\?project=/)
  const path = `/people/cus_ada/merge?project=${shop.id}`
  assert.equal((await dashboard.visit(path, { cookie, form: { into: 'pro_ada', confirm: 'x' } })).status, 400)
  const merged = await dashboard.visit(path, { cookie, form: { into: 'pro_ada', confirm: 'cus_ada' } })
  assert.deepEqual([merged.status, merged.headers.get('location')], [303, `/people/pro_ada?project=${shop.id}`])
  const left = await dashboard.visit(`/people/cus_ada?project=${shop.id}`, { cookie })
  assert.match(left.text, /<dt>Merged into<\/dt><dd>.*pro_ada/)
})

test('`profile waiting` lists what is named and not stored, until it comes', async () => {
  const shop = await shopWith()
  await dashboard.server.db.query(
    `insert into waiting_links (project_id, record, id, field, named, created_at)
     values ($1, 'profile', 'cus_ada', 'profile_id', 'pro_late', db_clock())`,
    [shop.id],
  )
  const listed = async () => (await dashboard.server.admin(`/projects/${shop.id}/waiting-links`)).body.data
  const [one] = await listed()
  assert.deepEqual([one.record, one.id, one.field, one.named], ['profile', 'cus_ada', 'profile_id', 'pro_late'])
  await bring(shop, [line.profile({ id: 'pro_late' })])
  assert.deepEqual(await listed(), [])
  assert.equal((await personOf(shop, 'cus_ada')).profile.merged_into, 'pro_late')
})

test('the doctor names likely twins with the command that merges them', async () => {
  const shop = await shopWith()
  const { stdout } = await tundish(['doctor'], dashboard.server.env)
  assert.match(stdout, new RegExp(`1 person of project ${shop.id} probably has several profiles`))
  assert.match(stdout, new RegExp(`tundish profile merge cus_ada pro_ada --project ${shop.id}`))
  await merge(shop, 'cus_ada', 'pro_ada')
  assert.doesNotMatch(
    (await tundish(['doctor'], dashboard.server.env)).stdout,
    new RegExp(`project ${shop.id} probably`),
  )
})
