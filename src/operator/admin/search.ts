// Finds a person, or an object by its id, across all organizations and projects.

import { paidAt } from '../../core/records/payment-time.ts'
import type { Reach } from '../../core/tenants/access.ts'
import { isUuid } from '../../lib/ids.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Param } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { fold, foldQueriedEmail } from '../../lib/text.ts'
import { instantFromPg } from '../../lib/time.ts'
import { reading } from './operation.ts'
import { type ReachColumns, reachCondition } from './reach.ts'

const MAX_RESULTS = 100
const KINDS = [
  'profile',
  'customer',
  'subscription',
  'order',
  'session',
  'transaction',
  'payment',
  'refund',
  'dispute',
  'project',
] as const

const result = Type.Named('SearchResult', {
  kind: Type.String({ enum: KINDS, description: 'Kind of the object.' }),
  organization_id: Type.String({ description: 'Organization.' }),
  project_id: Type.String({ description: 'Project.' }),
  id: Type.String({ description: 'Id of the object: the `external_id` of a customer, the `trx_id` of a payment.' }),
  email: Type.OrNull(Type.String(), 'E-mail address of a person.'),
  profile_id: Type.OrNull(Type.String(), 'The profile of the object.'),
  order_id: Type.OrNull(Type.String(), 'The order of a payment, refund or dispute.'),
  status: Type.OrNull(Type.String(), 'State, if the kind has one.'),
  created_at: Type.String({ format: 'date-time', description: 'When it was created.' }),
})

const search = reading({
  id: 'search',
  right: 'people',
  narrows: true,
  command: 'search',
  path: '/search',
  tag: 'Search',
  summary: 'Find people, subscriptions, orders and projects',
  description:
    'By e-mail address, case-insensitive, or by exact id: of Tundish, or of the payment provider for a charge, refund or dispute. A person is returned with their customers, subscriptions and orders; at most 100 of each kind, newest first. If nothing is found, by parts of the address before the @, without accents, one of them of three letters or more: `phi` and `ann soph` find `anna.sophie@example.com`; at most 100 people, in no order.',
  query: Type.Object({
    q: Type.String({
      description:
        'E-mail address, or an id of a profile, customer, session, subscription, transaction, order, payment, refund, dispute or project.',
      maxLength: 320,
    }),
  }),
  response: Type.Named('SearchResults', { results: Type.Array(result, { description: 'The objects found.' }) }),
  async run({ db }, { query, access }) {
    return { results: await find(db, query.q, access.reach) }
  },
})

async function find(db: Db, q: string, reach: Reach | null) {
  const values: Param[] = [q, foldQueriedEmail(q), isUuid(q) ? q : null, MAX_RESULTS]
  const rows = await db.query(reach ? SEARCH.replace('with', `with ${within(reach, values)},`) : SEARCH, values)
  const found = rows.length > 0 ? rows : await findByParts(db, q, reach)
  return found.map(({ created_at, ...row }) => ({ ...row, created_at: instantFromPg(created_at!) }))
}

// The index has three letters of each place.
const MIN_LETTERS = 3
const BETWEEN_WORDS = /[\s@._+-]+/
// In place of the project in the text of the query, because no id contains it.
const ITS_PROJECT = '\u0001'
const ACCENTS = /[\u0300-\u036f]/g

/**
 * People whose e-mail address contains each of the given parts before the @; some of them if they are many. Without a part of three
 * letters none: shorter ones are in too many addresses to be found quickly.
 */
async function findByParts(db: Db, q: string, reach: Reach | null) {
  const folded = fold(q.split('@', 1)[0]!).normalize('NFD').replace(ACCENTS, '')
  const parts = folded.split(BETWEEN_WORDS).filter(Boolean)
  const threes = [...new Set(parts.flatMap(threesOf))]
  if (threes.length === 0 || folded.includes(ITS_PROJECT)) return []
  const query = threes.map((three) => `'${ITS_PROJECT} ${three.replace(/['\\]/g, '$&$&')}'`).join(' & ')
  const patterns = parts.map((part) => `%${part.replace(/[\\%_]/g, '\\$&')}%`)
  const values: Param[] = [query, MAX_RESULTS, patterns]
  const own = { organization: 'p.organization_id', project: 'p.id' }
  return db.query(BY_PARTS.replace('ITS_REACH', (reach && reachCondition(reach, own, values)) ?? 'true'), values)
}

/** The three characters at each place of a text; none of a shorter one. */
function threesOf(text: string): string[] {
  const characters = [...text]
  return characters.slice(MIN_LETTERS - 1).map((_last, n) => characters.slice(n, n + MIN_LETTERS).join(''))
}

// The expression is that of the index. The project is a part of each word, and compared again in a way that no other index serves.
const BY_PARTS = `
  select 'profile' as kind, p.organization_id, f.project_id, f.id, f.email, f.id as profile_id, null as order_id, null as status,
    f.created_at
  from projects p cross join lateral (
    select * from profiles f
    where f.email_folded is not null and parts_of_address(f.project_id, f.email_folded) @@ replace($1, E'\\x01', p.id)::tsquery
      and f.project_id || '' = p.id and searched_address(f.email_folded) like all ($3)
    limit $2) f
  where ITS_REACH limit $2`

/** Views in place of the tables of tenants, customers and orders, with the rows within the reach: all others are found by these. */
function within(reach: Reach, values: Param[]): string {
  const view = (table: string, columns: ReachColumns) =>
    `${table} as not materialized (select * from ${table} where ${reachCondition(reach, columns, values)})`
  const own = { organization: 'organization_id', project: 'project_id' }
  return [
    view('organizations', { organization: 'id', projectsOf: 'organizations.id' }),
    view('projects', { organization: 'organization_id', project: 'id' }),
    view('customers', own),
    view('orders', own),
  ].join(', ')
}

const CUSTOMER = 'project_id, external_id, email, profile_id, created_at'
const MOVEMENT = `organization_id, external_id, trx_id, order_id, status, ${paidAt('report_transactions')} as paid_at`

// The columns are kind, organization, project, id, e-mail address, profile, order, state and time.
// Objects are looked up tenant by tenant: every index begins with the tenant, except that of the provider's charge ids.
const SEARCH = `
  with people as materialized (
    select p.organization_id, f.* from projects p cross join lateral (
      (select project_id, id, email, created_at from profiles
       where project_id = p.id and email_folded = $2 order by created_at desc limit $4)
      union select project_id, id, email, created_at from profiles where project_id = p.id and id = $1) f
  ), buyers as materialized (
    select o.id as organization_id, c.* from organizations o cross join lateral (
      select ${CUSTOMER} from customers where organization_id = o.id and external_id = $1
      union (select ${CUSTOMER} from customers
        where organization_id = o.id and email_folded = $2 order by created_at desc limit $4)) c
    union
    select p.organization_id, c.project_id, c.external_id, c.email, c.profile_id, c.created_at
    from people p join customers c on c.project_id = p.project_id and c.profile_id = p.id
  ), persons as materialized (
    select * from people
    union
    select b.organization_id, f.project_id, f.id, f.email, f.created_at
    from buyers b join profiles f on f.project_id = b.project_id and f.id = b.profile_id
  )
  (select 'profile' as kind, organization_id, project_id, id, email, id as profile_id, null as order_id, null as status,
     created_at
   from persons order by created_at desc limit $4)
  union all
  (select 'customer', organization_id, project_id, external_id, email, profile_id, null, null, created_at
   from buyers order by created_at desc limit $4)
  union all
  (select 'subscription', organization_id, project_id, id, null, profile_id, null, status, created_at from (
     select p.organization_id, s.project_id, s.id, s.profile_id, s.status, s.created_at
     from persons p join subscriptions s on s.project_id = p.project_id and s.profile_id = p.id
     union
     select p.organization_id, s.project_id, s.id, s.profile_id, s.status, s.created_at
     from projects p join subscriptions s on s.project_id = p.id and s.id = $1) found
   order by created_at desc limit $4)
  union all
  (select 'order', organization_id, project_id, order_id::text, null, null, order_id::text, status, created_at from (
     select o.organization_id, o.project_id, o.order_id, o.status, o.created_at
     from buyers b join orders o on o.organization_id = b.organization_id and o.external_id = b.external_id
     union
     select o.organization_id, o.project_id, o.order_id, o.status, o.created_at
     from organizations g join orders o on o.organization_id = g.id and o.order_id = $3::uuid
     union
     select o.organization_id, o.project_id, o.order_id, o.status, o.created_at
     from organizations g join orders o on o.organization_id = g.id and o.charge_transaction_id = $1) found
   order by created_at desc limit $4)
  union all
  (select 'session', p.organization_id, s.project_id, s.id, null, s.profile_id, null, null, s.created_at
   from projects p join sessions s on s.project_id = p.id and s.id = $1
   order by s.created_at desc limit $4)
  union all
  (select 'transaction', p.organization_id, t.project_id, t.id, null, t.profile_id, null, null, t.created_at
   from projects p join transactions t on t.project_id = p.id and t.id = $1
   order by t.created_at desc limit $4)
  union all
  (select 'payment', r.organization_id, c.project_id, r.trx_id::text, null, c.profile_id, r.order_id::text, r.status,
     r.paid_at
   from organizations g cross join lateral (
       select ${MOVEMENT} from report_transactions where organization_id = g.id and trx_id = $3::uuid
       union
       (select ${MOVEMENT} from report_transactions
        where organization_id = g.id and psp_transaction_id = $1 and imported limit $4)) r
     join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
   order by r.paid_at desc limit $4)
  union all
  (select 'refund', organization_id, project_id, refund_id::text, null, null, order_id::text, status, created_at from (
     select r.organization_id, o.project_id, r.refund_id, r.order_id, r.status, r.created_at
     from organizations g join refunds r on r.organization_id = g.id and r.refund_id = $3::uuid
       join orders o on o.organization_id = r.organization_id and o.order_id = r.order_id
     union
     select r.organization_id, o.project_id, r.refund_id, r.order_id, r.status, r.created_at
     from organizations g join refunds r on r.organization_id = g.id and r.provider_transaction_id = $1
       join orders o on o.organization_id = r.organization_id and o.order_id = r.order_id) found
   order by created_at desc limit $4)
  union all
  (select 'dispute', d.organization_id, o.project_id, d.dispute_id, null, null, d.order_id::text, d.status, d.created_at
   from organizations g join disputes d on d.organization_id = g.id and d.dispute_id = $1
     join orders o on o.organization_id = d.organization_id and o.order_id = d.order_id
   order by d.created_at desc limit $4)
  union all
  select 'project', organization_id, id, id, null, null, null, null, created_at from projects where id = $1`

export const searching = [search] as const
