// Lists and single records of the plain server.
import type { FastifyInstance } from 'fastify'
import type { Pool } from 'pg'

type Row = Record<string, unknown>
type Query = Record<string, string | undefined>

const PROJECT = 'bench'
const MOST = '9999-12-31T23:59:59.999999Z'

const SUBSCRIPTION = `
  s.id, s.psp_id, s.status, s.renews, s.sandbox, s.created_at, s.updated_at, s.billing_interval, s.billing_interval_count,
  s.price::int as price, s.currency, s.price_usd::int as price_usd, s.funnel_version, s.payment_provider, s.period_starts_at,
  s.period_ends_at, p.id as profile_id, p.created_at as profile_created_at, p.email, p.preview, d.id as product_id,
  d.name as product_name, d.status as product_status`
const SUBSCRIPTIONS = `
  subscriptions s
  join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  join products d on d.project_id = s.project_id and d.id = s.product_id`

const TRANSACTION = `
  s.id, s.created_at, s.updated_at, s.session_id, s.profile_id, s.funnel_id, f.title, f.alias, f.type, s.funnel_version,
  s.currency, s.price::int as price, s.price_usd::int as price_usd, s.sandbox, s.funnel_locale, s.experiment_id`
const TRANSACTIONS = 'transactions s left join funnels f on f.project_id = s.project_id and f.id = s.funnel_id'

function toSubscription(row: Row) {
  const { profile_id, profile_created_at, email, preview, product_id, product_name, product_status, ...rest } = row
  return {
    ...rest,
    profile: { id: profile_id, created_at: profile_created_at, email, preview },
    product: { id: product_id, name: product_name, status: product_status },
  }
}

function toTransaction({ title, alias, type, updated_at: _, ...rest }: Row) {
  return { ...rest, funnel: rest.funnel_id === null ? null : { id: rest.funnel_id, title, alias, type } }
}

export function addLists(app: FastifyInstance, pool: Pool): void {
  const subscriptions = { columns: SUBSCRIPTION, tables: SUBSCRIPTIONS, toItem: toSubscription }
  const transactions = { columns: TRANSACTION, tables: TRANSACTIONS, toItem: toTransaction }
  app.get<{ Querystring: Query }>('/subscriptions', ({ query }) => page(pool, 'subscriptions', subscriptions, query))
  app.get<{ Querystring: Query }>('/transactions', ({ query }) => page(pool, 'transactions', transactions, query))
  app.get<{ Params: { id: string } }>('/profiles/:id', async ({ params }, reply) => {
    const { rows } = await pool.query<Row>({ name: 'profile', text: PROFILE, values: [PROJECT, params.id] })
    return rows[0] ?? reply.code(404).send({ message: 'Not found.' })
  })
  app.get<{ Params: { id: string } }>('/subscriptions/:id', async ({ params }, reply) => {
    const { rows } = await pool.query<Row>({ name: 'one', text: ONE, values: [PROJECT, params.id] })
    return rows[0] ? toDetail(rows[0]) : reply.code(404).send({ message: 'Not found.' })
  })
}

interface Kind {
  columns: string
  tables: string
  toItem(row: Row): object
}

async function page(pool: Pool, list: string, { columns, tables, toItem }: Kind, query: Query) {
  const limit = Number(query.limit ?? 20)
  const { from, to, status, email } = filters(query)
  const values: unknown[] = [PROJECT]
  const where = ['s.project_id = $1']
  if (status) where.push(`s.status = $${values.push(status)}`)
  if (email) where.push(`p.email_folded = $${values.push(email.toLowerCase())}`)
  if (from) where.push(`s.updated_at >= $${values.push(from)} and s.updated_at < $${values.push(to ?? MOST)}`)
  const name = `${list}${status ? ' status' : ''}${email ? ' email' : ''}${from ? ' window' : ''}`
  const matching = { name, where: where.join(' and '), values: [...values] }
  const at = from ? 'updated_at' : 'created_at'
  const place = query.cursor ? readCursor(query.cursor) : undefined
  if (place) where.push(`(s.${at}, s.id) ${from ? '>' : '<'} ($${values.push(place.at)}, $${values.push(place.id)})`)
  const order = from ? 's.updated_at, s.id' : 's.created_at desc, s.id desc'
  const text = `select ${columns} from ${tables} where ${where.join(' and ')} order by ${order} limit $${values.push(limit + 1)}`
  const { rows } = await pool.query<Row>({ name: place ? `${name} later` : name, text, values })
  const total = place?.total ?? (await count(pool, list, tables, matching, { status, counted: Boolean(email || from) }))
  const hasMore = rows.length > limit
  const served = rows.slice(0, limit)
  const last = served.at(-1)
  const next = hasMore ? writeCursor({ at: last![at], id: last!.id, total }) : undefined
  return { data: served.map(toItem), pagination: { has_more: hasMore, total, next_cursor: next, cursor: next } }
}

interface Place {
  at: unknown
  id: unknown
  total: number
}

const readCursor = (cursor: string) => JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Place
const writeCursor = (place: Place) => Buffer.from(JSON.stringify(place)).toString('base64url')

function filters(query: Query) {
  return {
    from: query['filter[updated_at.from]'],
    to: query['filter[updated_at.to]'],
    status: query['filter[status]'],
    email: query['filter[email]'],
  }
}

/** The table of counters is there, so whoever writes this by hand uses it; the rest is counted. */
async function count(
  pool: Pool,
  list: string,
  tables: string,
  { name, where, values }: { name: string; where: string; values: unknown[] },
  { status = '', counted }: { status?: string; counted: boolean },
): Promise<number> {
  const bySelf = { name: `count ${name}`, text: `select count(*)::int as n from ${tables} where ${where}`, values }
  const byCounter = {
    name: 'total',
    text: `select coalesce(sum(n), 0)::int as n from counts
      where project_id = $1 and list = $2 and field = $3 and value = $4`,
    values: [PROJECT, list, status ? 'status' : '', status],
  }
  const { rows } = await pool.query<{ n: number }>(counted ? bySelf : byCounter)
  return rows[0]!.n
}

const PROFILE = `
  select id, created_at, updated_at, email, phone, country, locale, funnel_id, preview, integrations, anonymized_at
  from profiles where project_id = $1 and id = $2`

const ONE = `
  select ${SUBSCRIPTION}, f.id as funnel_id, f.title, f.alias, f.type, s.funnel_locale, v.id as session_id,
    v.created_at as session_created_at, v.locale, v.user_agent, s.trial_offer, s.trial_transaction_id, s.paused_at,
    s.cancelled_at, s.cancellation_reason, s.renewed_at, s.upgrades_to, s.custom_entitlement, e.id as experiment_id,
    e.title as experiment_title, e.alias as experiment_alias, e.enabled
  from ${SUBSCRIPTIONS} left join funnels f on f.project_id = s.project_id and f.id = s.funnel_id
  left join experiments e on e.project_id = s.project_id and e.id = s.experiment_id
  left join sessions v on v.project_id = s.project_id and v.id = s.session_id
  where s.project_id = $1 and s.id = $2`

function toDetail(row: Row) {
  const { funnel_id, title, alias, type, session_id, session_created_at, locale, user_agent, ...others } = row
  const { experiment_id, experiment_title, experiment_alias, enabled, ...item } = others
  return {
    ...toSubscription(item),
    funnel: funnel_id === null ? null : { id: funnel_id, title, alias, type },
    experiment:
      experiment_id === null ? null : { id: experiment_id, title: experiment_title, alias: experiment_alias, enabled },
    session: session_id === null ? null : { id: session_id, created_at: session_created_at, locale, user_agent },
  }
}
