// The writing of records: JSON with up to a thousand, or newline-delimited JSON of any length.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BadLine } from '../../core/records/import/fields.ts'
import { KINDS } from '../../core/records/records.ts'
import { ApiError, Refusal, tryLater } from '../../lib/errors.ts'
import { checkContentEncoding, checkMediaType } from '../../lib/http/body.ts'
import { problemResponse, problems } from '../../lib/http/problems.ts'
import { checkedAtEnd } from '../../lib/http/slow-bodies.ts'
import { isJsonObject, type JsonValue } from '../../lib/json/read.ts'
import { isRefusedData } from '../../lib/pg/errors.ts'
import { Type } from '../../lib/shape/schema.ts'
import { shorten } from '../../lib/text.ts'
import { TooManyEmptyLines } from '../ingest/lines.ts'
import { importRecords } from '../ingest/load.ts'
import type { RejectedCount } from '../ingest/rejected.ts'
import { recordsProblem, recordsResult, respond } from '../ingest/response.ts'
import { readRecord, readRow } from '../ingest/row.ts'
import { PATIENCE } from '../ingest/slots.ts'
import { linesOf, readBeginning } from '../ingest/small-body.ts'
import { Written } from '../ingest/writers.ts'
import type { PublicContext } from './context.ts'
import { describe, success } from './resource.ts'
import { isOfOperators, note, refuseKind, WriteCall, type WriteRequest, type WriteRoute } from './write-call.ts'

const LINES = 'application/x-ndjson'
const MAX_RECORDS = 1000

const record = Type.Named('RecordToWrite', {
  record: Type.String({ enum: KINDS.map(({ name }) => name), description: 'The kind of the record.' }),
  data: Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        'The fields of the record, as the guide on the import lists them: its identifier, and the fields that change. `null` clears a field.',
    },
  ),
})

const body = Type.Named(
  'RecordsToWrite',
  { records: Type.Array(record, { minItems: 1, maxItems: MAX_RECORDS, description: 'The records, in any order.' }) },
  {
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

export function records(app: FastifyInstance, context: PublicContext): void {
  app.register(async (inner) => {
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
    inner.post<WriteRoute>(
      '/records',
      {
        schema,
        config: { readsCompressed: true, mediaTypes: [LINES], scope: 'write' },
        validatorCompiler: ({ schema, httpPart }) =>
          httpPart === 'body' ? (value) => ({ value }) : inner.validatorCompiler!({ schema, httpPart } as never),
        preParsing: async (request) => {
          if (isLines(request)) checkMediaType(request.headers['content-type'], [LINES], [LINES])
          else checkContentEncoding(request.headers['content-encoding'])
        },
      },
      async (request) => (isLines(request) ? writeLines(context, request) : writeJson(context, request)),
    )
  })
}

const isLines = (request: FastifyRequest) =>
  /^application\/x-ndjson\s*(;|$)/i.test(request.headers['content-type'] ?? '')

async function writeJson(context: PublicContext, request: WriteRequest): Promise<object> {
  const given = recordsOf(request.exactBody)
  const call = new WriteCall(context, request)
  const reading = await call.reading()
  for (const [place, one] of given.entries()) {
    try {
      call.add(readRecord(one, reading), place)
    } catch (error) {
      if (!(error instanceof BadLine)) throw error
      call.reject({ place, code: error.code, reason: error.message }, nameIn(one))
    }
  }
  const lines = () => Readable.from([given.map((one) => JSON.stringify(one)).join('\n')])
  return unlessRefused(call.write(given.length, 'index'), () => importLines(context, request, lines, 'index'))
}

/** An import finds the records that the database refused in a batch, perhaps those of other calls. */
function unlessRefused(written: Promise<object>, importing: () => Promise<object>): Promise<object> {
  return written.catch((error) => {
    if (!isRefusedData(error)) throw error
    return importing()
  })
}

const nameIn = (record: JsonValue) =>
  isJsonObject(record) && typeof record['record'] === 'string' ? record['record'] : ''

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

async function writeLines(context: PublicContext, request: WriteRequest): Promise<object> {
  checkContentEncoding(request.headers['content-encoding'], ['gzip', 'identity'])
  const begun = await readBeginning(request.body as Readable)
  if (begun.isWhole) await request.confirmKey()
  const call = begun.isWhole ? await callOf(context, request, begun.bytes) : undefined
  const importing = () => importLines(context, request, begun.all, 'line').finally(begun.dropRest)
  return call ? unlessRefused(call.call.write(call.read, 'line'), importing) : importing()
}

/** A small body without a bad line is written in a batch with other calls; undefined for any other. */
async function callOf(context: PublicContext, request: WriteRequest, bytes: Buffer) {
  const lines = linesOf(bytes, MAX_RECORDS)
  if (!lines) return undefined
  const call = new WriteCall(context, request)
  const reading = await call.reading()
  try {
    for (const { text, number } of lines) call.add(readRow(text, reading), number)
  } catch (error) {
    if (error instanceof BadLine) return undefined
    throw error
  }
  return { call, read: lines.length }
}

// Sent again, the lines that are not accepted are named.
const NO_MORE_PAYMENTS =
  'The project stopped accepting payments by its keys while the body arrived. Nothing was written: send it again.'

/** Any number of lines, read while they arrive. */
async function importLines(
  context: PublicContext,
  request: WriteRequest,
  stream: () => Readable,
  where: 'index' | 'line',
): Promise<object> {
  const { db, log, audit } = context
  const { mode, events, skip_bad: skipBadLines } = request.query
  const written = new Written()
  let bad: RejectedCount[] = []
  let hasPayments = false
  const options = {
    projectId: request.projectId,
    live: true,
    merge: mode === 'merge',
    emitEvents: events === 'on',
    skipBadLines,
    refuseKind(name: string) {
      refuseKind(name, request)
      hasPayments ||= isOfOperators(name)
      written.add(name)
    },
    onRejected(counts: RejectedCount[]) {
      bad = counts
    },
    patience: PATIENCE,
  }
  // At its end the key has to be valid still, and the project has to accept what was read, or nothing is written.
  const confirm = async () => {
    await request.confirmKey()
    if (hasPayments && !request.writesPayments) throw tryLater('write_conflict', NO_MORE_PAYMENTS)
  }
  // Decompressed by the import, which recognizes gzip by its content.
  const source = { name: 'body', stream: () => checkedAtEnd(stream(), confirm) }
  const result = await importRecords({ db, log, audit }, options, [source]).catch((error) => {
    if (error instanceof TooManyEmptyLines) throw new ApiError(413, 'body_too_large', error.message)
    throw error instanceof Refusal ? new ApiError(400, 'body_incomplete', error.message) : error
  })
  const { rejects, stopped: _, ...counts } = result
  const isWritten = counts.rejected === 0 || (skipBadLines && counts.rejected < counts.read)
  const noted = isWritten ? written : new Written()
  for (const { record, code, n } of bad) {
    // Lines that refer to nothing were valid when they were read.
    if (isWritten && record !== '') noted.add(record, '', -n)
    noted.add(record, code, n)
  }
  note(context, request, counts, noted)
  return respond(
    counts,
    rejects.map(({ line, code, reason }) => ({ [where]: where === 'index' ? line - 1 : line, code, reason })),
    skipBadLines,
  )
}
