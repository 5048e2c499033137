// The erasure of the plain server: empties the columns in one transaction, without ledger, events and audit log.
import type { FastifyInstance } from 'fastify'
import type { Pool } from 'pg'

const PROJECT = 'bench'

const EFFECTS = [
  `update profiles set email = null, email_folded = null, phone = null, password_hash = null, integrations = '{}',
     anonymized_at = now(), updated_at = now() where project_id = $1 and id = any($2)`,
  `update sessions set ip = null, user_agent = null, postal_code = null, tracking_cookies = '{}', query_params = '{}',
     origin = substring(origin from '^[a-z]+://[^/]*'), updated_at = now() where project_id = $1 and profile_id = any($2)`,
  `update replies set value = 'null' where project_id = $1 and session_id in
     (select id from sessions where project_id = $1 and profile_id = any($2))`,
  'update subscriptions set updated_at = now() where project_id = $1 and profile_id = any($2)',
  'update customers set email = null where project_id = $1 and profile_id = any($2)',
]

export function anonymize(app: FastifyInstance, pool: Pool): void {
  app.post<{ Body: { profile_ids: string[] } }>('/profiles/anonymize', async ({ body }, reply) => {
    const values = [PROJECT, body.profile_ids]
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rowCount } = await client.query(
        'select 1 from profiles where project_id = $1 and id = any($2) for update',
        values,
      )
      if (rowCount !== body.profile_ids.length) {
        await client.query('rollback')
        return reply.code(404).send({ message: 'Some profiles do not exist.' })
      }
      for (const effect of EFFECTS) await client.query(effect, values)
      await client.query('commit')
      return { message: `${body.profile_ids.length} profiles anonymized.` }
    } finally {
      client.release()
    }
  })
}
