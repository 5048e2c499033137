// The reference "plain" of credits: a ledger as a team writes it by hand. A balance in a row, an entry with a unique key, one transaction.
// It has no holds, no expiry, no order of entries, no events and no refunds.
import Fastify from 'fastify'
import pg from 'pg'

// As many as our server has for transactions.
const CONNECTIONS = 12

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: CONNECTIONS, options: '-c jit=off' })

await pool.query(`
  create table if not exists plain_balances (
    organization_id text not null, external_id text not null, unit text not null,
    balance numeric(24, 6) not null check (balance >= 0), primary key (organization_id, external_id, unit));
  create table if not exists plain_entries (
    organization_id text not null, external_id text not null, unit text not null, idempotency_key text not null,
    amount numeric(24, 6) not null, balance numeric(24, 6) not null, created_at timestamptz not null,
    primary key (organization_id, external_id, idempotency_key));
  create index if not exists plain_entries_in_order on plain_entries (organization_id, created_at);
  insert into plain_balances select organization_id, external_id, unit, balance from credit_accounts on conflict do nothing`)

interface Body {
  external_id: string
  unit: string
  amount: number
  idempotency_key: string
}

const SPEND = {
  name: 'spend',
  text: `update plain_balances set balance = balance - $4
    where organization_id = $1 and external_id = $2 and unit = $3 and balance >= $4 returning balance`,
}
const ENTER = {
  name: 'enter',
  text: 'insert into plain_entries values ($1, $2, $3, $4, $5, $6, clock_timestamp())',
}

const app = Fastify()
app.post<{ Params: { org: string }; Body: Body }>(
  '/:org/v1/credits/spend',
  async ({ params: { org }, body }, reply) => {
    const { external_id, unit, amount, idempotency_key } = body
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rows } = await client.query<{ balance: string }>({ ...SPEND, values: [org, external_id, unit, amount] })
      const [row] = rows
      if (!row) {
        await client.query('rollback')
        return reply.code(400).send({ code: 'insufficient_credits' })
      }
      await client.query({ ...ENTER, values: [org, external_id, unit, idempotency_key, -amount, row.balance] })
      await client.query('commit')
      return { balance: Number(row.balance), idempotent_replay: false }
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  },
)

process.on('SIGTERM', () => process.exit(0))
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)
