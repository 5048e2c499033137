// Declares the routes of the data API's resources: a list route, a detail route, and their descriptions.
import type { FastifyInstance } from 'fastify'
import { type List, listQuery, pageSchema } from '../../core/lists/list.ts'
import { servePage } from '../../core/lists/page.ts'
import type { Reads, Source } from '../../core/lists/source.ts'
import { VOID_DESCRIPTION, VOID_HEADER } from '../../core/lists/void.ts'
import { ApiError } from '../../lib/errors.ts'
import { problems } from '../../lib/http/problems.ts'
import { sendJson } from '../../lib/http/send-json.ts'
import type { Param, Statement } from '../../lib/pg/types.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { isId, shorten } from '../../lib/text.ts'

interface Description {
  operationId: string
  tag: string
  summary: string
  description?: string
}

/** Serves a list at `path`, with its horizon when the caller walks by `updated_at`. */
export function listRoute(app: FastifyInstance, reads: Reads, path: string, list: List, about: Description): void {
  const schema = {
    ...describe(about),
    querystring: listQuery(list),
    response: {
      200: success('A page of the list.', pageSchema(list), HORIZON),
      ...problems(400, 401, 403),
    },
  }
  app.get(path, { schema }, async (request, reply) => {
    const { projectId, query } = request
    const page = await reads.run(projectId, (source) =>
      servePage(source, list, projectId, query as Record<string, unknown>),
    )
    if (page.horizon !== undefined) {
      reply.header('x-sync-horizon', page.horizon)
      if (page.voidFrom !== undefined) reply.header(VOID_HEADER, page.voidFrom)
      const given = query as Record<string, string | undefined>
      const to = given['filter[updated_at.to]']
      // An empty window without a beginning is read for the horizon alone, before the export or another list.
      if (to === undefined || page.rows > 0 || given['filter[updated_at.from]'] !== undefined)
        request.synced = { list: path.slice(1), windowTo: to ?? page.horizon, rows: page.rows }
    }
    return sendJson(reply, page.json)
  })
}

type Rows = Pick<List, 'table' | 'alias' | 'joins' | 'shape'>

/** Serves one object of the project by its id. */
export function detailRoute(app: FastifyInstance, reads: Reads, path: string, rows: Rows, about: Description): void {
  const noun = nounOf(about)
  const { shape } = rows
  const statement = findStatement(rows, noun)
  const schema = detailSchema(about, `The ${noun}.`, shape.schema)
  app.get<{ Params: { id: string } }>(path, { schema }, async ({ params, projectId }, reply) => {
    const row = await reads.run(projectId, async (source) => {
      const [found] = await findRows(source, statement, projectId, params.id)
      if (!found) throw notFound(noun, params.id)
      return found
    })
    return sendJson(reply, shape.write(row))
  })
}

const nounOf = ({ tag }: Description) => tag.toLowerCase().replace(/s$/, '')

/** Finds an object by its project and its id. */
export const findStatement = ({ table, alias, joins, shape }: Rows, noun: string): Statement => ({
  name: `find ${noun}`,
  text: `select ${shape.columns} from ${table} ${alias} ${joins} where ${alias}.project_id = $1 and ${alias}.id = $2`,
})

/** The schema of a route with an id in its path. */
export function detailSchema(about: Description, response: string, schema: Schema) {
  const noun = nounOf(about)
  const id = Type.String({ description: `The id of the ${noun}.`, minLength: 1, maxLength: 64 })
  return {
    ...describe(about),
    params: Type.Object({ id }),
    querystring: Type.Object({}),
    response: { 200: success(response, schema), ...problems(400, 401, 403, 404) },
  }
}

/** Runs a statement for one object. An id that cannot exist is not looked up. */
export async function findRows(
  source: Pick<Source, 'read'>,
  statement: Statement,
  projectId: string,
  id: string,
  ...more: Param[]
) {
  return isId(id) ? source.read(statement, [projectId, id, ...more]) : []
}

/** The 404 for an object that does not exist or belongs to another project. */
export function notFound(noun: string, id: string): ApiError {
  return new ApiError(404, 'object_not_found', `There is no ${noun} with the id "${shorten(id, 64)}".`)
}

export function describe({ operationId, tag, summary, description }: Description) {
  return { operationId, tags: [tag], summary, description: description ?? summary, security: [{ projectKey: [] }] }
}

/** A successful response with its headers, as @fastify/swagger describes it. */
export function success(description: string, schema: Schema, headers: object = {}) {
  return { description, headers: { ...commonHeaders, ...headers }, content: { 'application/json': { schema } } }
}

export const HORIZON = {
  'X-Sync-Horizon': {
    type: 'string',
    format: 'date-time',
    description:
      'Only with an `updated_at` filter: every change stamped before this instant is visible now, and none will be stamped before it later.',
  },
  'X-Void-From': VOID_DESCRIPTION,
}

const commonHeaders = {
  RateLimit: {
    type: 'string',
    description: 'What the key has left: `r` requests now, and more after `t` seconds. Absent if the key has no limit.',
    example: '"key";r=4998;t=1',
  },
  'RateLimit-Policy': {
    type: 'string',
    description: 'What the key may send: `q` requests at once, and as many again in every `w` seconds.',
    example: '"key";q=5000;w=5',
  },
}
