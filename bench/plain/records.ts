// The writing of sessions by the plain server: one upsert for each request, without merging, figures, events and erasures.
import type { FastifyInstance } from 'fastify'
import type { Pool } from 'pg'

const PROJECT = 'bench'

const UPSERT = {
  name: 'upsert sessions',
  text: `insert into sessions (project_id, id, created_at, updated_at, profile_id, funnel_id, locale, country, user_agent)
    select $1, id, created_at, now(), profile_id, funnel_id, locale, country, user_agent
    from json_populate_recordset(null::sessions, $2)
    on conflict (project_id, id) do update set updated_at = now(), profile_id = excluded.profile_id,
      funnel_id = excluded.funnel_id, locale = excluded.locale, country = excluded.country, user_agent = excluded.user_agent`,
}

export function addRecords(app: FastifyInstance, pool: Pool): void {
  app.post<{ Body: { records: { data: object }[] } }>('/records', async ({ body }) => {
    const rows = body.records.map(({ data }) => data)
    await pool.query({ ...UPSERT, values: [PROJECT, JSON.stringify(rows)] })
    return { written: rows.length }
  })
}
