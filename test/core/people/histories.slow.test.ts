// Random histories of visits, imports from Stripe, merges and erasures: one living profile for each customer, nothing of the erased, exact
// totals. `HISTORIES` is how many are run, `FROM` the seed of the first. Histories of a crowd happen at the same time in one project.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { storeLines } from '../../../src/data/ingest/stripe/store.ts'
import { emptyTally } from '../../../src/data/ingest/stripe/tally.ts'
import { openRandom, type Random } from '../../../src/lib/seeded-random.ts'
import { assertCounted } from '../../data/ingest/counters.ts'
import { assertExact } from '../../support/figures.ts'
import { importLines, type Line, line, uuid } from '../../support/imports.ts'
import { type ApiResponse, type Project, startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

const HISTORIES = Number(process.env['HISTORIES'] ?? 100)
const FROM = Number(process.env['FROM'] ?? 1)
const CROWD = 250
const STEPS = 14
const PEOPLE = [0, 1, 2]
const MARK = 'Marker'

const server = await startTestServer({}, { worker: false })
after(() => server.stop())

/** A person of a history. `id` is unique in all histories. */
interface Person {
  n: number
  id: string
}

interface History {
  seed: number
  random: Random
  people: Person[]
  done: string[]
  /** The numbers of the people who were erased. */
  erased: Set<number>
}

const openHistory = (seed: number): History => ({
  seed,
  random: openRandom(seed),
  people: PEOPLE.map((n) => ({ n, id: `${seed}_${n}` })),
  done: [],
  erased: new Set(),
})

const funnel = line.funnel({ id: 'quiz' })

const bring = (shop: Project, lines: Line[]) =>
  importLines(server.app, shop.id, lines, { live: true, emitEvents: true, skipBadLines: true })

/** What a person's own funnel writes, in an order that references allow or not. */
const visitOf = ({ id }: Person) => [
  line.profile({ id: `pro_${id}`, email: `${MARK}${id}@example.com` }),
  line.session({ id: `ses_${id}`, profile_id: `pro_${id}`, funnel_id: 'quiz', ip: undefined, user_agent: MARK }),
  line.reply({ session_id: `ses_${id}`, value: MARK }),
]

let made = 0
const payments = new Map<string, { trx_id: string; order_id: string }>()

/** The lines of a person's customer at Stripe: a subscription, paid once. `isNamed`: its metadata names the session. */
function stripeOf({ n, id }: Person, isNamed: boolean) {
  const profile_id = `cus_${id}`
  const names = isNamed ? { session: `ses_${id}`, profile: `pro_${id}` } : {}
  const sub = line.subscription({ id: `sub_${id}`, profile_id })
  const paid = line.transaction({ id: `ch_${id}`, profile_id, subscription_id: `sub_${id}`, price: 100 + n })
  const ids = payments.get(id) ?? { trx_id: uuid(10_000_000 + ++made), order_id: uuid(20_000_000 + made) }
  payments.set(id, ids)
  return [
    line.profile({ id: profile_id, email: `${MARK}${id}@example.com` }),
    line.customer({ external_id: `customer_${id}`, profile_id, email: `${MARK}${id}@example.com` }),
    { ...sub, names },
    { ...paid, names },
    line.payment({ external_id: `customer_${id}`, ...ids }),
  ]
}

async function importStripe(shop: Project, lines: ReturnType<typeof stripeOf>) {
  const target = {
    organizationId: shop.organizationId,
    projectId: shop.id,
    merchantId: 'acct',
    externalIdKey: undefined,
  }
  const context = { db: server.db, target, tally: emptyTally() }
  const how = { live: true, signal: new AbortController().signal }
  await storeLines(server.app, context as never, [line.product(), ...lines] as never, how)
  assert.deepEqual(context.tally.rejects, [])
}

/** Takes a step in each history; what the steps import is imported at once. */
async function step(shop: Project, histories: History[]): Promise<void> {
  const visits: Line[] = []
  const fromStripe: ReturnType<typeof stripeOf> = []
  const calls: (() => Promise<void>)[] = []
  for (const { random, people, done, erased } of histories) {
    const person = random.pick(people)
    const what = random.weighted({ visit: 4, part: 3, stripe: 4, unnamed: 2, merge: 2, erase: 1 })
    if (what === 'visit') visits.push(...visitOf(person))
    if (what === 'part') visits.push(random.pick(visitOf(person)))
    if (what === 'stripe' || what === 'unnamed') fromStripe.push(...stripeOf(person, what === 'stripe'))
    const profiles = [`cus_${person.id}`, `pro_${person.id}`]
    const [one, other] = random.chance(0.5) ? profiles : profiles.reverse()
    if (what === 'merge') calls.push(() => merge(shop, one!, other!))
    if (what === 'erase') calls.push(async () => void ((await erase(shop, one!)) && erased.add(person.n)))
    done.push(`${what} ${person.n}`)
  }
  await bring(shop, [funnel, ...visits])
  await importStripe(shop, fromStripe)
  const next = calls.values()
  const lane = async () => {
    for (const call of next) await call()
  }
  await Promise.all([lane(), lane(), lane(), lane()])
}

/** Sends it again after a 503: on a busy machine the last of many may wait too long for the audit log. */
async function statusOf(send: () => Promise<ApiResponse>): Promise<number> {
  let status = 0
  await until('a response', async () => {
    status = (await send()).status
    return status !== 503
  })
  assert.ok(status < 500)
  return status
}

async function merge(shop: Project, from: string, into: string) {
  const path = `/projects/${shop.id}/profiles/${from}/merge/${into}`
  await statusOf(() => server.admin(path, { method: 'POST' }))
}

/** Whether there was such a profile. */
async function erase(shop: Project, id: string): Promise<boolean> {
  return (await statusOf(() => shop.post('/profiles/anonymize', { profile_ids: [id] }))) === 200
}

/** Everything that belongs to a person, by the person's id. */
async function holdingsOf(shop: Project) {
  const by = async (text: string) =>
    Map.groupBy(await server.db.query(text, [shop.id]), (row) => /\d+_\d+$/.exec(row['id']!)![0])
  return {
    living: await by('select id from profiles where project_id = $1 and anonymized_at is null'),
    held: await by(`
      select id, profile_id, session_id, funnel_id, price from subscriptions where project_id = $1 union all
      select id, profile_id, session_id, funnel_id, price from transactions where project_id = $1 union all
      select id, profile_id, id, funnel_id, 0 from sessions where project_id = $1 union all
      select c.external_id, c.profile_id, null, null, 0 from customers c where c.project_id = $1 and exists (
        select from report_transactions r where r.organization_id = c.organization_id and r.external_id = c.external_id)`),
  }
}

async function check(shop: Project, histories: History[]) {
  const { living, held } = await holdingsOf(shop)
  for (const { seed, people, done, erased } of histories) {
    const history = `seed ${seed}: ${done.join(', ')}`
    for (const { n, id } of people) {
      const alive = (living.get(id) ?? []).map((row) => row['id'])
      assert.ok(alive.length <= 1, `${alive} of person ${n}: ${history}`)
      const rows = held.get(id) ?? []
      const found = rows.map((row) => row['id']).sort()
      assert.deepEqual(found, [`ch_${id}`, `customer_${id}`, `ses_${id}`, `sub_${id}`], history)
      assert.equal(rows.find((row) => row['id'] === `ch_${id}`)!['price'], String(100 + n), history)
      if (erased.has(n)) continue
      assert.equal(alive.length, 1, history)
      assert.deepEqual([...new Set(rows.map((row) => row['profile_id']))], alive, history)
      const sold = rows.filter((row) => row['session_id'] !== null)
      assert.deepEqual(
        [...new Set(sold.map((row) => `${row['session_id']} ${row['funnel_id']}`))],
        [`ses_${id} quiz`],
        history,
      )
    }
  }
  const ids = async (text: string) =>
    (await server.db.query(text, [shop.id])).map((row) => Object.values(row).join(' '))
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
  assert.deepEqual(ofErased, [], 'profiles with something of an erased person; their ids begin with the seed')
  const aliases = await ids(
    `select a.alias from profile_aliases a where a.project_id = $1 and (
       exists (select from profile_aliases o where o.project_id = $1 and o.alias = a.profile_id)
       ${['sessions', 'subscriptions', 'transactions', 'customers'].map((table) => `or exists (select from ${table} t where t.project_id = $1 and t.profile_id = a.alias)`).join(' ')})`,
  )
  assert.deepEqual(aliases, [], 'profiles that were merged and still have records; their ids begin with the seed')
  const of = `seeds ${histories[0]!.seed} to ${histories.at(-1)!.seed}`
  await assertExact(server.db, shop.id, of)
  await assertCounted(server.db, shop, of)
}

test(`after each of ${HISTORIES} random histories: one living profile for a customer, nothing of the erased, exact totals`, async () => {
  const seeds = Array.from({ length: HISTORIES }, (_none, n) => FROM + n)
  while (seeds.length > 0) {
    const histories = seeds.splice(0, CROWD).map(openHistory)
    const shop = await server.project()
    for (let n = 0; n < STEPS; n += 1) await step(shop, histories)
    // Everything comes again, at last the visits or the payments.
    const lasts = Map.groupBy(histories, ({ random }) => (random.chance(0.5) ? 'visits' : 'payments'))
    const visitsOf = (last: 'visits' | 'payments') =>
      (lasts.get(last) ?? []).flatMap(({ people }) => people.flatMap(visitOf))
    await bring(shop, [funnel, ...visitsOf('payments')])
    await importStripe(
      shop,
      histories.flatMap(({ people }) => people.flatMap((person) => stripeOf(person, true))),
    )
    await bring(shop, [funnel, ...visitsOf('visits')])
    await check(shop, histories)
  }
})
