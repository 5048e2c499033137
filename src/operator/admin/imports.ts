// The import over HTTP: newline-delimited JSON of any length, read as a stream.
import { finished, PassThrough, Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { BadLine } from '../../core/records/import/fields.ts'
import { importProblem, importResult, respond } from '../../data/ingest/response.ts'
import { PATIENCE } from '../../data/ingest/slots.ts'
import { ApiError, Refusal } from '../../lib/errors.ts'
import { checkMediaType } from '../../lib/http/body.ts'
import { problemResponse, problems } from '../../lib/http/problems.ts'
import { checkedAtEnd } from '../../lib/http/slow-bodies.ts'
import { type ObjectSchema, Type } from '../../lib/shape/schema.ts'
import { importAudited } from './audited-import.ts'
import { actorOf, confirmOperator, requireOpen } from './authentication.ts'
import { refuseNul, requireProject } from './exist.ts'
import { reachesOrganizationOf, requireReach } from './reach.ts'

const MEDIA_TYPES = ['application/x-ndjson', 'application/jsonl', 'application/ndjson']

const query = Type.Object({
  live: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        '`true`: a feed; records get the present time as `updated_at`, so that syncs read them. `false`: history; records keep the dates of their lines.',
    }),
  ),
  merge: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        '`true`: a line changes only the fields that it has, and null clears a field. `false`: it replaces the record.',
    }),
  ),
  emit_events: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Writes events of new and changed profiles, sessions and subscriptions, and of new transactions.',
    }),
  ),
  dry_run: Type.Optional(Type.Boolean({ default: false, description: 'Checks everything and writes nothing.' })),
  skip_bad_lines: Type.Optional(
    Type.Boolean({ default: false, description: 'Skips bad lines instead of rejecting the import.' }),
  ),
})

/** What the import needs, as an operation declares it. */
export const IMPORT = {
  id: 'importRecords',
  method: 'POST',
  right: 'imports',
  path: '/projects/:project_id/import',
} as const

interface Route {
  Params: { project_id: string }
  Querystring: { live: boolean; merge: boolean; emit_events: boolean; dry_run: boolean; skip_bad_lines: boolean }
  Body: Readable | undefined
}

/** Mounts the import next to the operations: its body is a stream, not a JSON document. */
export function importRoute(scope: FastifyInstance, app: App): void {
  scope.register(async (inner) => {
    inner.removeAllContentTypeParsers()
    inner.addContentTypeParser(MEDIA_TYPES, async ({ headers }: FastifyRequest, payload: Readable) => {
      checkMediaType(headers['content-type'], [MEDIA_TYPES[0]!], MEDIA_TYPES)
      return payload
    })
    // As everywhere: the type is optional, and may be that of JSON.
    inner.addContentTypeParser('*', async ({ headers }: FastifyRequest, payload: Readable) => {
      checkMediaType(headers['content-type'], [MEDIA_TYPES[0]!])
      return payload
    })
    inner.post<Route>(
      IMPORT.path,
      { schema: schema(query), onRequest: requireOpen(IMPORT), bodyLimit: Number.MAX_SAFE_INTEGER },
      async (request) => {
        refuseNul(request.params)
        const { project_id } = request.params
        const { live, merge, emit_events: emitEvents, dry_run, skip_bad_lines } = request.query
        await requireReach(app.db.query, IMPORT, { params: { project_id }, access: request.operator! })
        await requireProject(app.db.query, project_id)
        const { body } = request
        // An import may take hours to arrive: at its end the operator's key has to be valid still, or nothing is written.
        const confirm = () => confirmOperator(request, app)
        const stream = () => (body ? checkedAtEnd(openBody(body), confirm) : Readable.from([]))
        const flags = { live, merge, emitEvents, dryRun: dry_run, skipBadLines: skip_bad_lines }
        const isWhole = await reachesOrganizationOf(app.db.query, request.operator!.reach, project_id)
        const options = {
          ...{ projectId: project_id, ...flags, patience: PATIENCE },
          ...(!isWhole && { refuseKind: refuseAccounts }),
        }
        const importing = importAudited(app, actorOf(request, app), options, [{ name: 'body', stream }])
        const result = await importing.catch(throwAsApiError).finally(() => body && dropRest(body))
        const { rejects, stopped: _, ...counts } = result
        return respond(
          counts,
          rejects.map(({ line, code, reason }) => ({ line, code, reason })),
          skip_bad_lines,
        )
      },
    )
  })
}

/** Merchant accounts are those of all projects of the organization. */
function refuseAccounts(kind: string): void {
  if (kind === 'merchant_account')
    throw new BadLine('merchant_account needs an operator who reaches the whole organization', 'not_allowed')
}

/**
 * The body as a stream that may be destroyed before its end. An import that stops early would otherwise destroy the
 * connection that its response needs.
 */
function openBody(body: Readable): Readable {
  const content = new PassThrough()
  finished(body, (error) => {
    if (error) content.destroy(error)
  })
  return body.pipe(content)
}

/** Reads and discards the rest of the body, so that the next request on the connection is found. */
function dropRest(body: Readable): void {
  body.unpipe()
  body.resume()
}

function schema(querystring: ObjectSchema): object {
  return {
    operationId: IMPORT.id,
    tags: ['Import'],
    summary: 'Import records',
    description:
      'Newline-delimited JSON, one record on each line, all or nothing unless `skip_bad_lines` is true. Each text has a limit in bytes, which is part of the description of its field in the public API. When nothing is written because of bad lines, the response is 400, with the same counts.\n\nRoles: owner, developer.\n\nAt the command line: `tundish import`.',
    security: [{ operatorKey: [] }],
    params: Type.Object({ project_id: Type.String({ description: 'The project id.' }) }),
    querystring,
    consumes: MEDIA_TYPES,
    response: {
      200: { description: 'Done.', content: { 'application/json': { schema: importResult } } },
      ...problems(401, 403, 404, 409, 415),
      400: problemResponse(400, importProblem),
    },
  }
}

function throwAsApiError(error: unknown): never {
  throw error instanceof Refusal ? new ApiError(409, 'operation_refused', error.message) : error
}
