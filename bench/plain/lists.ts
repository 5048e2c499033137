// Lists and single records of the plain server.
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Pool } from 'pg'
import { type Cells, columns, flag, type Item, inner, item, raw, text, time } from './items.ts'

type Query = Record<string, string | undefined>

/** Two pools: the first plans each statement once, the second also for given values, where PostgreSQL expects a better plan. */
export interface Pools {
  planned: Pool
  byValue: Pool
}

const PROJECT = 'bench'
const LATEST = '9999-12-31T23:59:59.999999Z'

const SUBSCRIPTION = {
  ...columns('s', text, 'id psp_id status'),
  ...columns('s', flag, 'renews sandbox'),
  ...columns('s', time, 'created_at updated_at period_starts_at period_ends_at'),
  ...columns('s', text, 'billing_interval currency payment_provider'),
  ...columns('s', raw, 'billing_interval_count price price_usd funnel_version'),
  profile: inner({
    id: text('p.id'),
    created_at: time('p.created_at'),
    email: text('p.email'),
    preview: flag('p.preview'),
  }),
  product: inner(columns('d', text, 'id name status')),
}
const SUBSCRIPTIONS = `
  subscriptions s
  join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  join products d on d.project_id = s.project_id and d.id = s.product_id`
const FUNNEL = inner(columns('f', text, 'id title alias type'), true)

const TRANSACTIONS = 'transactions s left join funnels f on f.project_id = s.project_id and f.id = s.funnel_id'
const transaction = item({
  ...columns('s', text, 'id session_id profile_id funnel_id currency funnel_locale experiment_id'),
  created_at: time('s.created_at'),
  ...columns('s', raw, 'funnel_version price price_usd'),
  sandbox: flag('s.sandbox'),
  funnel: FUNNEL,
})
const subscription = item(SUBSCRIPTION)

const profile = item({
  ...columns('p', text, 'id email phone country locale funnel_id'),
  ...columns('p', time, 'created_at updated_at anonymized_at'),
  preview: flag('p.preview'),
  integrations: raw('p.integrations'),
})

const detail = item({
  ...SUBSCRIPTION,
  ...columns('s', text, 'funnel_locale trial_transaction_id cancellation_reason upgrades_to price_note'),
  ...columns('s', time, 'paused_at cancelled_at renewed_at'),
  ...columns('s', raw, 'trial_offer custom_entitlement'),
  funnel: FUNNEL,
  experiment: inner({ ...columns('e', text, 'id title alias'), enabled: flag('e.enabled') }, true),
  session: inner({ ...columns('v', text, 'id locale user_agent'), created_at: time('v.created_at') }, true),
})
const DETAIL = `${SUBSCRIPTIONS}
  left join funnels f on f.project_id = s.project_id and f.id = s.funnel_id
  left join experiments e on e.project_id = s.project_id and e.id = s.experiment_id
  left join sessions v on v.project_id = s.project_id and v.id = s.session_id`

export function addLists(app: FastifyInstance, pools: Pools): void {
  const kinds = {
    subscriptions: { list: 'subscriptions', tables: SUBSCRIPTIONS, item: subscription },
    transactions: { list: 'transactions', tables: TRANSACTIONS, item: transaction },
  }
  for (const [name, kind] of Object.entries(kinds)) {
    app.get<{ Querystring: Query }>(`/${name}`, async ({ query }, reply) => json(reply, await page(pools, kind, query)))
  }
  const one = (path: string, name: string, alias: string, tables: string, { columns, write }: Item) => {
    const text = `select ${columns} from ${tables} where ${alias}.project_id = $1 and ${alias}.id = $2`
    app.get<{ Params: { id: string } }>(path, async ({ params }, reply) => {
      const [row] = await cells(pools.planned, name, text, [PROJECT, params.id])
      return row ? json(reply, write(row, 0)) : reply.code(404).send({ message: 'Not found.' })
    })
  }
  one('/profiles/:id', 'profile', 'p', 'profiles p', profile)
  one('/subscriptions/:id', 'one', 's', DETAIL, detail)
}

const json = (reply: FastifyReply, body: string) =>
  reply.header('content-type', 'application/json; charset=utf-8').send(body)

async function cells(pool: Pool, name: string, text: string, values: unknown[]): Promise<Cells[]> {
  return (await pool.query<Cells>({ name, text, values, rowMode: 'array', types: AS_TEXT })).rows
}
const AS_TEXT = { getTypeParser: () => (value: string) => value }

interface Kind {
  list: string
  tables: string
  item: Item
}

async function page(pools: Pools, { list, tables, item }: Kind, query: Query): Promise<string> {
  const limit = Number(query.limit ?? 20)
  const { from, to, status, email } = filters(query)
  const values: unknown[] = [PROJECT]
  const where = ['s.project_id = $1']
  if (status) where.push(`s.status = $${values.push(status)}`)
  if (email) where.push(`p.email_folded = $${values.push(email.toLowerCase())}`)
  if (from) where.push(`s.updated_at >= $${values.push(from)} and s.updated_at < $${values.push(to ?? LATEST)}`)
  const filtered = `${status ? ' status' : ''}${email ? ' email' : ''}${from ? ' window' : ''}`
  // Without a filter one plan is good for all values; for a filter the planner has to know the value.
  const pool = filtered === '' ? pools.planned : pools.byValue
  const matching = { name: `${list}${filtered}`, where: where.join(' and '), values: [...values] }
  const at = from ? 'updated_at' : 'created_at'
  const place = query.cursor ? readCursor(query.cursor) : undefined
  if (place) where.push(`(s.${at}, s.id) ${from ? '>' : '<'} ($${values.push(place.at)}, $${values.push(place.id)})`)
  const order = from ? 's.updated_at, s.id' : 's.created_at desc, s.id desc'
  const counted = place || email || from ? 'null' : counter(list, status)
  // The limit is in the text: with a parameter the statement would be planned again at each call.
  const text = `select s.${at}, s.id, ${counted}, ${item.columns} from ${tables} where ${where.join(' and ')}
    order by ${order} limit ${limit + 1}`
  const rows = await cells(pool, `${matching.name} ${place ? 'later' : 'first'} ${limit}`, text, values)
  const hasMore = rows.length > limit
  const total = place?.total ?? (rows[0]?.[2] ? Number(rows[0][2]) : await count(pool, tables, matching))
  let data = ''
  for (let n = 0; n < Math.min(limit, rows.length); n += 1) data += (n === 0 ? '' : ',') + item.write(rows[n]!, 3)
  const last = rows[limit - 1]
  const cursor = hasMore ? writeCursor({ at: last![0]!, id: last![1]!, total }) : undefined
  const next = cursor === undefined ? '' : `,"next_cursor":"${cursor}","cursor":"${cursor}"`
  return `{"data":[${data}],"pagination":{"has_more":${hasMore},"total":${total}${next}}}`
}

interface Place {
  at: string
  id: string
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

/** The total from the table of counters, read in the statement of the page. */
const counter = (list: string, status: string | undefined) => `(select coalesce(sum(n), 0) from counts
  where project_id = $1 and list = '${list}' and field = '${status ? 'status' : ''}' and value = ${status ? '$2' : "''"})`

async function count(
  pool: Pool,
  tables: string,
  { name, where, values }: { name: string; where: string; values: unknown[] },
): Promise<number> {
  const [row] = await cells(pool, `count ${name}`, `select count(*) from ${tables} where ${where}`, values)
  return Number(row![0])
}
