// Random histories of visits, imports from Stripe, merges and erasures: one living profile for each customer, nothing of the erased, exact
// totals. `HISTORIES` is how many are run.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { importRecords } from '../../../src/data/ingest/load.ts'
import { storeLines } from '../../../src/data/ingest/stripe/store.ts'
import { emptyTally } from '../../../src/data/ingest/stripe/tally.ts'
import { openRandom, type Random } from '../../../src/lib/seeded-random.ts'
import { assertExact } from '../../support/figures.ts'
import { countsOf, type Line, line, textOf, uuid } from '../../support/imports.ts'
import { type Project, startTestServer } from '../../support/server.ts'

const HISTORIES = Number(process.env['HISTORIES'] ?? 5)
const STEPS = 14
const PEOPLE = [0, 1, 2]
const MARK = 'Marker'

const server = await startTestServer({}, { worker: false })
after(() => server.stop())

const bring = (shop: Project, lines: Line[]) =>
  importRecords(server.app, { projectId: shop.id, live: true, emitEvents: true, skipBadLines: true }, [
    { name: 'visits', stream: () => [Buffer.from(textOf(lines))] as never },
  ])

/** What a person's own funnel writes, in an order that references allow or not. */
const visitOf = (n: number) => [
  line.profile({ id: `pro_${n}`, email: `${MARK}${n}@example.com` }),
  line.session({ id: `ses_${n}`, profile_id: `pro_${n}`, funnel_id: 'quiz', ip: undefined, user_agent: MARK }),
  line.reply({ session_id: `ses_${n}`, value: MARK }),
]

let made = 0
/** The lines of a person's customer at Stripe: a subscription, paid once. `isNamed`: its metadata names the session. */
function stripeOf(n: number, shop: Project, isNamed: boolean) {
  const [profile_id, customer] = [`cus_${n}`, `cus_${n}_${shop.id}`]
  const names = isNamed ? { session: `ses_${n}`, profile: `pro_${n}` } : {}
  const sub = line.subscription({ id: `sub_${n}`, profile_id })
  const paid = line.transaction({ id: `ch_${n}`, profile_id, subscription_id: `sub_${n}`, price: 100 + n })
  const payment = {
    external_id: customer,
    trx_id: payments.get(customer) ?? uuid(50_000 + ++made),
    order_id: uuid(60_000 + n),
  }
  payments.set(customer, payment.trx_id)
  return [
    line.product(),
    line.profile({ id: profile_id, email: `${MARK}${n}@example.com` }),
    line.customer({ external_id: customer, profile_id, email: `${MARK}${n}@example.com` }),
    { ...sub, names },
    { ...paid, names },
    line.payment(payment),
  ]
}
const payments = new Map<string, string>()

async function importStripe(shop: Project, n: number, isNamed: boolean) {
  const target = {
    organizationId: shop.organizationId,
    projectId: shop.id,
    merchantId: 'acct',
    externalIdKey: undefined,
  }
  const context = { db: server.db, target, tally: emptyTally() }
  const how = { live: true, signal: new AbortController().signal }
  await storeLines(server.app, context as never, stripeOf(n, shop, isNamed) as never, how)
  assert.deepEqual(context.tally.rejects, [])
}

const merge = (shop: Project, from: string, into: string) =>
  server.admin(`/projects/${shop.id}/profiles/${from}/merge/${into}`, { method: 'POST' })

async function step(random: Random, shop: Project, n: number): Promise<string> {
  const what = random.weighted({ visit: 4, part: 3, stripe: 4, unnamed: 2, merge: 2, erase: 1 })
  if (what === 'visit') await bring(shop, [line.funnel({ id: 'quiz' }), ...visitOf(n)])
  if (what === 'part') await bring(shop, [random.pick(visitOf(n))])
  if (what === 'stripe') await importStripe(shop, n, true)
  if (what === 'unnamed') await importStripe(shop, n, false)
  const pair = random.chance(0.5) ? [`cus_${n}`, `pro_${n}`] : [`pro_${n}`, `cus_${n}`]
  if (what === 'merge') await merge(shop, pair[0]!, pair[1]!)
  if (what === 'erase') {
    const { status } = await shop.post('/profiles/anonymize', { profile_ids: [pair[0]!] })
    if (status === 200) erased.add(`${shop.id} ${n}`)
  }
  return `${what} ${n}`
}
const erased = new Set<string>()

const rows = (text: string, params: string[]) => server.db.query(text, params)

async function check(shop: Project, history: string) {
  const ids = async (text: string) => (await rows(text, [shop.id])).map((row) => Object.values(row).join(' '))
  for (const n of PEOPLE) {
    const living = await ids(
      `select id from profiles where project_id = $1 and anonymized_at is null and id in ('pro_${n}', 'cus_${n}')`,
    )
    const isErased = erased.has(`${shop.id} ${n}`)
    assert.ok(living.length <= 1, `${living} of person ${n}: ${history}`)
    if (isErased) continue
    assert.equal(living.length, 1, history)
    const owners = await ids(
      `select profile_id from subscriptions where project_id = $1 and id = 'sub_${n}' union
       select profile_id from sessions where project_id = $1 and id = 'ses_${n}' union
       select profile_id from transactions where project_id = $1 and id = 'ch_${n}' union
       select profile_id from customers where project_id = $1 and external_id like 'cus_${n}_%'`,
    )
    assert.deepEqual(owners, living, history)
    const sessions = await ids(
      `select session_id, funnel_id from subscriptions where project_id = $1 and id = 'sub_${n}' union
       select session_id, funnel_id from transactions where project_id = $1 and id = 'ch_${n}'`,
    )
    assert.deepEqual(sessions, [`ses_${n} quiz`], history)
  }
  const ofErased = await ids(
    `select p.id from profiles p where p.project_id = $1 and p.anonymized_at is not null and (p.email is not null
       or exists (select from sessions s where s.project_id = $1 and s.profile_id = p.id and s.user_agent is not null)
       or exists (select from sessions s join replies r on r.project_id = $1 and r.session_id = s.id
         where s.project_id = $1 and s.profile_id = p.id and r.value::text <> 'null')
       or exists (select from customers c where c.project_id = $1 and c.profile_id = p.id and c.email is not null)
       or exists (select from events e where e.project_id = $1 and e.profile_id = p.id and e.data::text like '%${MARK}%'))
     union select e.profile_id from erasures e join profiles p on p.project_id = $1 and p.id = e.profile_id
       where e.project_id = $1 and p.anonymized_at is null`,
  )
  assert.deepEqual(ofErased, [], history)
  const aliases = await ids(
    `select a.alias from profile_aliases a where a.project_id = $1 and (
       exists (select from profile_aliases o where o.project_id = $1 and o.alias = a.profile_id)
       ${['sessions', 'subscriptions', 'transactions', 'customers'].map((table) => `or exists (select from ${table} t where t.project_id = $1 and t.profile_id = a.alias)`).join(' ')})`,
  )
  assert.deepEqual(aliases, [], history)
  const totals = await ids(
    `select (select count(*) from sessions where project_id = $1) as a,
       (select count(*) from subscriptions where project_id = $1) as b,
       (select count(*) from transactions where project_id = $1) as c,
       (select sum(price) from transactions where project_id = $1) as d,
       (select count(*) from report_transactions r join customers c using (organization_id, external_id) where c.project_id = $1) as e`,
  )
  assert.deepEqual(totals, ['3 3 3 303 3'], history)
  await assertExact(server.db, shop.id, history)
  const { kept, recounted } = await countsOf({ rows } as never, shop)
  assert.deepEqual(kept, recounted, history)
}

test(`after each of ${HISTORIES} random histories: one living profile for a customer, nothing of the erased, exact totals`, async () => {
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const shop = await server.project()
    const random = openRandom(seed)
    const done: string[] = []
    for (let n = 0; n < STEPS; n += 1) done.push(await step(random, shop, random.pick(PEOPLE)))
    // Half of everything comes late, or again.
    const late = PEOPLE.map((n) => () => bring(shop, [line.funnel({ id: 'quiz' }), ...visitOf(n)]))
    const last = PEOPLE.map((n) => () => importStripe(shop, n, true))
    for (const one of random.chance(0.5) ? [...late, ...last] : [...last, ...late]) await one()
    await check(shop, `seed ${seed}: ${done.join(', ')}`)
  }
})
