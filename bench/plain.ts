// The reference "plain": the same answers by Fastify and pg as a good developer would write them by hand, without our checks.
import Fastify from 'fastify'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 12, options: '-c TimeZone=UTC -c jit=off' })
const app = Fastify()

const COLUMNS = `
  s.id, s.psp_id, s.status, s.renews, s.sandbox, s.created_at, s.updated_at, s.billing_interval, s.billing_interval_count,
  s.price::int as price, s.currency, s.price_usd::int as price_usd, s.funnel_version, s.payment_provider, s.period_starts_at,
  s.period_ends_at, p.id as profile_id, p.created_at as profile_created_at, p.email, p.preview, d.id as product_id,
  d.name as product_name, d.status as product_status`
const TABLES = `
  subscriptions s
  join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  join products d on d.project_id = s.project_id and d.id = s.product_id`

type Row = Record<string, unknown>

function toItem({
  profile_id,
  profile_created_at,
  email,
  preview,
  product_id,
  product_name,
  product_status,
  ...rest
}: Row) {
  return {
    ...rest,
    profile: { id: profile_id, created_at: profile_created_at, email, preview },
    product: { id: product_id, name: product_name, status: product_status },
  }
}

app.get<{ Querystring: { limit?: string; cursor?: string } }>('/subscriptions', async ({ query }) => {
  const limit = Number(query.limit ?? 20)
  const [at, id] = query.cursor
    ? (JSON.parse(Buffer.from(query.cursor, 'base64url').toString()) as [string, string])
    : []
  const place = id ? 'and (s.created_at, s.id) < ($3, $4)' : ''
  const { rows } = await pool.query<Row>({
    name: id ? 'later' : 'first',
    text: `select ${COLUMNS} from ${TABLES} where s.project_id = $1 ${place} order by s.created_at desc, s.id desc limit $2`,
    values: id ? ['bench', limit + 1, at, id] : ['bench', limit + 1],
  })
  const hasMore = rows.length > limit
  const data = rows.slice(0, limit).map(toItem) as Row[]
  const last = data.at(-1)
  const next = hasMore ? Buffer.from(JSON.stringify([last!.created_at, last!.id])).toString('base64url') : undefined
  const total = id
    ? undefined
    : await pool.query({
        name: 'total',
        text: "select sum(n)::int as n from counts where project_id = $1 and list = 'subscriptions' and field = ''",
        values: ['bench'],
      })
  return { data, pagination: { has_more: hasMore, total: total?.rows[0].n, next_cursor: next, cursor: next } }
})

app.get<{ Params: { id: string } }>('/subscriptions/:id', async ({ params }, reply) => {
  const { rows } = await pool.query<Row>({
    name: 'one',
    text: `
      select ${COLUMNS}, f.id as funnel_id, f.title, f.alias, f.type, s.funnel_locale, v.id as session_id,
        v.created_at as session_created_at, v.locale, v.user_agent, s.trial_offer, s.trial_transaction_id, s.paused_at,
        s.cancelled_at, s.cancellation_reason, s.renewed_at, s.upgrades_to, s.custom_entitlement
      from ${TABLES} left join funnels f on f.project_id = s.project_id and f.id = s.funnel_id
      left join sessions v on v.project_id = s.project_id and v.id = s.session_id
      where s.project_id = $1 and s.id = $2`,
    values: ['bench', params.id],
  })
  if (rows.length === 0) return reply.code(404).send({ message: 'Not found.' })
  const { funnel_id, title, alias, type, session_id, session_created_at, locale, user_agent, ...item } = rows[0]!
  return {
    ...toItem(item),
    funnel: { id: funnel_id, title, alias, type },
    session: { id: session_id, created_at: session_created_at, locale, user_agent },
  }
})

const url = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${url}\n`)
process.on('SIGTERM', () => process.exit(0))
