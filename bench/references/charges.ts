// The reference "plain" of charges: the cost of a charge without any checks. A table of keys, one transaction around the
// provider's call, an order and a row for the report. A crash during the call loses a charge that was made: never use this code.
import { createHash, randomUUID } from 'node:crypto'
import http from 'node:http'
import Fastify from 'fastify'
import pg from 'pg'

// Each charge holds a connection during the provider's call.
const CONNECTIONS = 128

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS, options: '-c jit=off' })
const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS })
const simulator = new URL(process.env.SIMULATOR_URL!)

await pool.query(`
  create table if not exists plain_charges (
    organization_id text not null, idempotency_key text not null, order_id uuid not null, external_id text not null,
    amount numeric not null, currency text not null, status text not null, answer jsonb, created_at timestamptz not null,
    settled_at timestamptz, primary key (organization_id, idempotency_key));
  create table if not exists plain_report (
    organization_id text not null, order_id uuid not null, external_id text not null, amount numeric not null,
    currency text not null, status text not null, details jsonb, created_at timestamptz not null,
    primary key (organization_id, order_id));
  create index if not exists plain_report_in_order on plain_report (organization_id, created_at)`)

interface Body {
  external_id: string
  amount: string
  currency_code: string
  idempotency_key: string
}

const app = Fastify()
app.post<{ Params: { org: string }; Body: Body }>('/:org/v1/payment/one_off_charge', async (request, reply) => {
  const { org } = request.params
  if ((await holderOf(String(request.headers['service-secret-key']))) !== org) return reply.code(401).send({})
  const client = await pool.connect()
  try {
    await client.query('begin')
    const answer = await charge(client, org, request.body)
    await client.query('commit')
    return answer
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
})

const holders = new Map<string, string>()

async function holderOf(key: string): Promise<string | undefined> {
  const known = holders.get(key)
  if (known !== undefined) return known
  const hash = createHash('sha256').update(key).digest()
  const { rows } = await pool.query<{ id: string }>(
    'select organization_id as id from secret_keys where hash = $1 and project_id is null',
    [hash],
  )
  if (rows[0]) holders.set(key, rows[0].id)
  return rows[0]?.id
}

async function charge(client: pg.PoolClient, org: string, body: Body): Promise<object> {
  const order = randomUUID()
  const key = [org, body.idempotency_key]
  const { rowCount } = await client.query({
    name: 'claim',
    text: `insert into plain_charges (organization_id, idempotency_key, order_id, external_id, amount, currency, status, created_at)
      values ($1, $2, $3, $4, $5, $6, 'processing', now()) on conflict do nothing`,
    values: [...key, order, body.external_id, body.amount, body.currency_code],
  })
  if (rowCount === 0) return replay(client, key)
  const { outcome, details } = await chargeAtProvider(order, body)
  const answer = { order_id: order, checkout_status: outcome }
  await client.query({
    name: 'settle',
    text: `update plain_charges set status = $3, answer = $4, settled_at = clock_timestamp()
      where organization_id = $1 and idempotency_key = $2`,
    values: [...key, outcome, answer],
  })
  await client.query({
    name: 'report',
    text: 'insert into plain_report values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp())',
    values: [org, order, body.external_id, body.amount, body.currency_code, outcome, details],
  })
  return answer
}

async function replay(client: pg.PoolClient, key: string[]): Promise<object> {
  const text = 'select answer from plain_charges where organization_id = $1 and idempotency_key = $2'
  const { rows } = await client.query<{ answer: object }>({ name: 'replay', text, values: key })
  return rows[0]!.answer
}

/** The token of the saved card is the part of the customer's id before the number. */
function chargeAtProvider(order: string, { external_id, amount, currency_code }: Body) {
  const body = JSON.stringify({
    key: order,
    reference: order,
    amount_minor: String(Math.round(Number(amount) * 100)),
    currency_code,
    merchant_id: 'main',
    region: null,
    token: external_id.split(' ')[0],
  })
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const { hostname, port } = simulator
  return new Promise<{ outcome: string; details: object }>((resolve, reject) => {
    const request = http.request({ hostname, port, path: '/charges', method: 'POST', agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve(JSON.parse(text)))
    })
    request.on('error', reject).end(body)
  })
}

process.on('SIGTERM', () => process.exit(0))
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)
