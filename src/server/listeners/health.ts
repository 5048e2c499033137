// The health routes: whether the process is up, and whether the database responds and has every migration.
import type { FastifyInstance } from 'fastify'
import { tryLater } from '../../lib/errors.ts'
import { problemResponse } from '../../lib/http/problems.ts'
import type { Db } from '../../lib/pg/db.ts'
import { pendingMigrations } from '../../lib/pg/migrate.ts'
import { Type } from '../../lib/shape/schema.ts'

const okay = {
  description: 'Yes.',
  content: {
    'application/json': { schema: Type.Object({ status: Type.String({ examples: ['ok'] }) }, { title: 'Health' }) },
  },
}

export function health(listener: FastifyInstance, { db }: { db: Db }): void {
  listener.get(
    '/health/live',
    {
      schema: {
        operationId: 'getLiveness',
        tags: ['Health'],
        summary: 'Whether the process is up',
        description: 'Does not query the database.',
        security: [],
        querystring: Type.Object({}),
        response: { 200: okay, 400: problemResponse(400) },
      },
    },
    async () => ({ status: 'ok' }),
  )
  listener.get(
    '/health/ready',
    {
      schema: {
        operationId: 'getReadiness',
        tags: ['Health'],
        summary: 'Whether requests can be served',
        description: 'The database responds and its schema is current.',
        security: [],
        querystring: Type.Object({}),
        response: { 200: okay, 400: problemResponse(400), 503: problemResponse(503) },
      },
    },
    async () => {
      await checkReady(db)
      return { status: 'ok' }
    },
  )
}

async function checkReady(db: Db): Promise<void> {
  const pending = await pendingMigrations((text) => db.query(text)).catch(() => undefined)
  if (!pending) throw tryLater('database_unavailable', 'The database does not respond.')
  const some = pending.length === 1 ? '1 migration has' : `${pending.length} migrations have`
  if (pending.length > 0) throw tryLater('migrations_pending', `${some} not been run yet.`)
}
