// The writing of records: JSON with up to a thousand, or newline-delimited JSON of any length.
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BadLine } from '../../core/records/import/fields.ts'
import { KINDS } from '../../core/records/records.ts'
import { ApiError, Refusal } from '../../lib/errors.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import { checkContentEncoding } from '../../lib/http/body.ts'
import { refuseOtherMethods } from '../../lib/http/listener.ts'
import { problemResponse, problems } from '../../lib/http/problems.ts'
import { isJsonObject, type JsonValue } from '../../lib/json/read.ts'
import { Type } from '../../lib/shape/schema.ts'
import { shorten } from '../../lib/text.ts'
import type { FeedReject, FeedRow } from '../ingest/feed-batch.ts'
import { importRecords } from '../ingest/load.ts'
import { recordsProblem, recordsResult, respond } from '../ingest/response.ts'
import { readRecord } from '../ingest/row.ts'
import { PATIENCE } from '../ingest/slots.ts'
import type { PublicContext } from './context.ts'
import { describe, success } from './resource.ts'

const LINES = 'application/x-ndjson'
const MAX_RECORDS = 1000
// Those that decide whose card is charged.
const OF_OPERATORS = new Set(['payment', 'customer', 'merchant_account'])

const record = Type.Object(
  {
    record: Type.String({ enum: KINDS.map(({ name }) => name), description: 'The kind of the record.' }),
    data: Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'The fields of the record, as the guide on the import lists them: its identifier, and the fields that change. `null` clears a field.',
      },
    ),
  },
  { title: 'RecordToWrite', additionalProperties: false },
)

const body = Type.Object(
  { records: Type.Array(record, { minItems: 1, maxItems: MAX_RECORDS, description: 'The records, in any order.' }) },
  {
    title: 'RecordsToWrite',
    additionalProperties: false,
    examples: [
      {
        records: [
          { record: 'profile', data: { id: 'pro_ada', created_at: '2026-01-31T09:00:00Z', country: 'DE' } },
          {
            record: 'session',
            data: { id: 'ses_ada', created_at: '2026-01-31T09:00:00Z', profile_id: 'pro_ada', locale: 'de' },
          },
        ],
      },
    ],
  },
)

const querystring = Type.Object({
  mode: Type.Optional(
    Type.String({
      enum: ['merge', 'replace'],
      default: 'merge',
      description: '`merge`: only the given fields change. `replace`: fields that are absent lose their values.',
    }),
  ),
  events: Type.Optional(
    Type.String({ enum: ['on', 'off'], default: 'on', description: '`off`: no events are sent to webhooks.' }),
  ),
  skip_bad: Type.Optional(
    Type.Boolean({ default: false, description: '`true`: the good records are written even if others are bad.' }),
  ),
})

interface Route {
  Querystring: { mode: 'merge' | 'replace'; events: 'on' | 'off'; skip_bad: boolean }
  Body: unknown
}

export function records(app: FastifyInstance, context: PublicContext): void {
  app.register(async (inner) => {
    // The call for the outer scope came before this route, so it does not include it.
    refuseOtherMethods(inner)
    inner.addContentTypeParser(LINES, async (_request: FastifyRequest, payload: Readable) => payload)
    const schema = {
      ...describe({
        operationId: 'writeRecords',
        tag: 'Records',
        summary: 'Write records',
        description:
          'Writes up to 1,000 records as JSON, or any number as newline-delimited JSON (`application/x-ndjson`, also with `Content-Encoding: gzip`), one record on each line. All or nothing, unless `skip_bad` is true. A record that is older than the stored one, by its `updated_at`, is skipped, so that calls may come in any order, and again after a time-out. The key needs the scope `write`.',
      }),
      querystring,
      body,
      response: {
        200: success('The records are written.', recordsResult),
        ...problems(401, 403, 408, 413, 415),
        400: problemResponse(400, recordsProblem),
      },
    }
    inner.post<Route>(
      '/records',
      {
        schema,
        config: { readsCompressed: true, scope: 'write' },
        validatorCompiler: ({ schema, httpPart }) =>
          httpPart === 'body' ? (value) => ({ value }) : inner.validatorCompiler!({ schema, httpPart } as never),
        preParsing: async (request) => {
          if (!isLines(request)) checkContentEncoding(request.headers['content-encoding'])
        },
      },
      async (request) => (isLines(request) ? writeLines(context, request) : writeJson(context, request)),
    )
  })
}

const isLines = (request: FastifyRequest) =>
  /^application\/x-ndjson\s*(;|$)/i.test(request.headers['content-type'] ?? '')

type Request = FastifyRequest<Route>

async function writeJson({ feed }: PublicContext, request: Request): Promise<object> {
  const given = recordsOf(request.exactBody)
  const { mode, events, skip_bad: skipBad } = request.query
  const reading = { latest: await feed.latest(), merge: mode === 'merge' }
  const rows: FeedRow[] = []
  const rejects: FeedReject[] = []
  for (const [place, one] of given.entries()) {
    try {
      const row = readRecord(one, reading)
      refuseKind(row.kind.name)
      rows.push({ ...row, place })
    } catch (error) {
      if (!(error instanceof BadLine)) throw error
      rejects.push({ place, code: error.code, reason: error.message })
    }
  }
  if (rejects.length > 0 && (!skipBad || rows.length === 0)) return answer(given.length, NOTHING, rejects, skipBad)
  const { projectId, organizationId } = request
  const written = await feed.write({ projectId, organizationId, rows, emitEvents: events === 'on', skipBad })
  return answer(given.length, written, [...rejects, ...written.rejects], skipBad)
}

const NOTHING = { written: 0, unchanged: 0, skipped: 0, erased: 0 }
const REPORTED = 100

function answer(read: number, counts: typeof NOTHING, rejects: FeedReject[], skipBad: boolean): object {
  const { written, unchanged, skipped, erased } = counts
  const first = rejects.slice(0, REPORTED)
  return respond(
    { read, written, unchanged, skipped, erased, rejected: rejects.length },
    first.map(({ place, code, reason }) => ({ index: place, code, reason: hideSecrets(reason) })),
    skipBad,
  )
}

/** The records of a JSON body; each of them is checked later. */
function recordsOf(body: JsonValue | undefined): JsonValue[] {
  if (body === undefined) throw new ApiError(400, 'body_required', 'A body is required: a JSON object.')
  if (!isJsonObject(body)) throw new ApiError(400, 'invalid_property', 'The body must be an object with "records".')
  const unknown = Object.keys(body).find((name) => name !== 'records')
  if (unknown !== undefined)
    throw new ApiError(400, 'unknown_property', `The body has no property "${shorten(unknown, 64)}".`)
  const { records } = body
  if (records === undefined) throw new ApiError(400, 'property_required', 'records is required.')
  if (!Array.isArray(records) || records.length === 0 || records.length > MAX_RECORDS)
    throw new ApiError(400, 'invalid_property', `records must be an array of 1 to ${MAX_RECORDS} records.`)
  return records
}

function refuseKind(name: string): void {
  if (OF_OPERATORS.has(name))
    throw new BadLine(
      `${name} must be imported by an operator, because it decides whose card is charged`,
      'not_allowed',
    )
}

async function writeLines({ db, log, audit }: PublicContext, request: Request): Promise<object> {
  const { mode, events, skip_bad: skipBadLines } = request.query
  const encoding = request.headers['content-encoding']?.toLowerCase()
  if (encoding !== 'gzip') checkContentEncoding(encoding)
  // Decompressed by the import, which recognizes gzip by its content.
  const stream = () => request.body as Readable
  const options = {
    projectId: request.projectId,
    live: true,
    merge: mode === 'merge',
    emitEvents: events === 'on',
    skipBadLines,
    refuseKind,
    patience: PATIENCE,
  }
  const result = await importRecords({ db, log, audit }, options, [{ name: 'body', stream }]).catch((error) => {
    throw error instanceof Refusal ? new ApiError(400, 'body_incomplete', error.message) : error
  })
  const { rejects, stopped: _, ...counts } = result
  return respond(
    counts,
    rejects.map(({ line, code, reason }) => ({ line, code, reason })),
    skipBadLines,
  )
}
