// The export: one streamed response with every record that changed in a window, a JSON line each, for warehouses.
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { readCreditHorizon } from '../../core/lists/credit-horizon.ts'
import { readCursor, writeCursor } from '../../core/lists/cursor.ts'
import { weightOf } from '../../core/lists/page.ts'
import type { Reads, Source } from '../../core/lists/source.ts'
import { VOID_HEADER } from '../../core/lists/void.ts'
import { beingMoved } from '../../core/tenants/leaving.ts'
import { ApiError } from '../../lib/errors.ts'
import { problems } from '../../lib/http/problems.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { instantFromPg } from '../../lib/time.ts'
import type { PublicContext } from './context.ts'
import { BEGINNING, EXPORT_KINDS, type ExportKind, PAGE_ROWS, PLACE_COLUMNS } from './export-kinds.ts'
import { describe, HORIZON, success } from './resource.ts'

const MEDIA_TYPE = 'application/x-ndjson'
// For programs that know no other: some generated clients leave out a response whose type is not text or JSON.
const PLAIN_TEXT = 'text/plain'

interface Window {
  projectId: string
  from: string
  /** At most the horizon, because some changes after it may not be visible yet. */
  to: string
}

/** The position after which the export continues. */
interface Place {
  kind: number
  at: string
  id: string
  /** With replicas, the position of the database's log when the export began. */
  mark: bigint | undefined
}

const query = Type.Object({
  from: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Only records with `updated_at` at or after this instant; by default all.',
    }),
  ),
  to: Type.Optional(
    Type.String({
      format: 'date-time',
      description:
        'Only records with `updated_at` before this instant; by default, and at most, before the sync horizon.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description:
        'Resumes an incomplete export: the value of its last `cursor` line. The other parameters must be the same.',
    }),
  ),
})

export function exports(app: FastifyInstance, { db, reads }: PublicContext): void {
  const schema = {
    ...describe({
      operationId: 'exportRecords',
      tag: 'Export',
      summary: 'Export the records that changed',
      description:
        'A stream of newline-delimited JSON: a line `{"record", "data"}` for each record that changed in the window, from time to time a line `{"cursor"}` from which the export can be resumed, and at the end a line `{"horizon"}`, the `from` of the next export. A response without that last line is incomplete.',
    }),
    querystring: query,
    response: { 200: ndjson(), ...problems(400, 401, 403) },
  }
  app.get('/export', { schema }, async (request, reply) => {
    const { projectId } = request
    const given = request.query as { from?: string; to?: string; cursor?: string }
    const project = await readProject(db, projectId)
    const { window, place, voidFrom } = await begin(db, reads, projectId, given)
    const { accept = '' } = request.headers
    const isText = accept.includes(PLAIN_TEXT) && !accept.includes(MEDIA_TYPE)
    reply
      .header('content-type', isText ? `${PLAIN_TEXT}; charset=utf-8` : MEDIA_TYPE)
      .header('vary', 'accept')
      .header('x-sync-horizon', window.to)
      .header('x-project-id', projectId)
      .header('x-project-created-at', project.createdAt)
    if (voidFrom !== undefined) reply.header(VOID_HEADER, voidFrom)
    // The framework would read the stream to its end and drop it. It sends no length for a stream, and 0 for no body.
    if (request.method === 'HEAD') return reply.send(Readable.from([]))
    // A key that is revoked while an export is sent ends it, as one whose rows are gone: without the last line.
    const confirm = () => request.confirmKey()
    // A reader of the export has the window only once it has the last line.
    const complete = (rows: number) => {
      request.synced = { list: 'export', windowTo: window.to, rows }
    }
    const body = lines(db, reads, window, { place, number: project.number, confirm, complete })
    return reply.send(Readable.from(body, { objectMode: false, highWaterMark: 1 }))
  })
}

/** The window and the position to begin after: before its first record, or that of the cursor, which also has its window. */
async function begin(db: Db, reads: Reads, projectId: string, given: { from?: string; to?: string; cursor?: string }) {
  const { from = BEGINNING.at, to, cursor } = given
  const binding = JSON.stringify([projectId, 'export', from, to])
  if (cursor !== undefined) {
    const { place, horizon } = readPlace(cursor, binding)
    return { window: { projectId, from, to: horizon, binding }, place, voidFrom: undefined }
  }
  // Before the project's horizon, whose state a replica has reached.
  const ofCredits = await readCreditHorizon(db, projectId)
  return reads.run(projectId, async (source) => {
    const voidFrom = await source.voidFrom(projectId, given.from)
    const horizon = await source.horizon(projectId)
    const end = [to, ofCredits].reduce<string>((first, at) => (at !== undefined && at < first ? at : first), horizon)
    const place: Place = { kind: 0, ...BEGINNING, mark: await source.mark() }
    return { window: { projectId, from, to: end, binding }, place, voidFrom }
  })
}

type Export = Window & { binding: string }

interface Course {
  place: Place
  /** The project's number when the export began. */
  number: string
  /** Throws when no more may be read. */
  confirm: () => Promise<void>
  /** Called before the last line, with the number of records that were sent. */
  complete: (rows: number) => void
}

/** Reads a page when the page before has been sent, so that a slow reader occupies neither a connection nor memory. */
async function* lines(db: Db, reads: Reads, window: Export, course: Course): AsyncIterable<Buffer> {
  const { number, confirm, complete } = course
  let { place } = course
  let sent = 0
  while (place.kind < EXPORT_KINDS.length) {
    const kind = EXPORT_KINDS[place.kind]!
    await confirm()
    const rows = await reads.run(window.projectId, (source) => readPage(source, kind, window, place))
    const last = rows.at(-1)
    if (last) place = { ...place, at: instantFromPg(last.text(0)!), id: last.text(1)! }
    if (rows.length < PAGE_ROWS) {
      // Rows that a move to another shard has removed would be missing from a complete export.
      if ((await readProject(db, window.projectId)).number !== number) throw beingMoved()
      place = { ...place, kind: place.kind + 1, ...BEGINNING }
    }
    if (last) yield writeLines(kind, rows, { cursor: writePlace(place, window) })
    sent += rows.length
  }
  complete(sent)
  yield Buffer.from(`${JSON.stringify({ horizon: window.to })}\n`)
}

/** With the project's number, which a move gives anew, also when it brings the project back. Throws when the project is gone. */
async function readProject(db: Db, projectId: string): Promise<{ number: string; createdAt: string }> {
  const [row] = await db.read(PROJECT, [projectId])
  if (!row) throw beingMoved()
  return { number: row.text(0)!, createdAt: instantFromPg(row.text(1)!) }
}

const PROJECT = { name: 'exported project', text: 'select number, created_at from projects where id = $1' }

async function readPage(source: Source, { page }: ExportKind, window: Window, { at, id, mark }: Place): Promise<Row[]> {
  await source.reach(mark)
  const { projectId, from, to } = window
  return source.fair(projectId, weightOf(PAGE_ROWS), () => source.read(page, [projectId, from, to, at, id]))
}

function writeLines({ name, shape }: ExportKind, rows: Row[], after: object): Buffer {
  const before = Buffer.from(`{"record":"${name}","data":`)
  const end = Buffer.from('}\n')
  const records = rows.flatMap((row) => [before, shape.write(row, PLACE_COLUMNS), end])
  return Buffer.concat([...records, Buffer.from(`${JSON.stringify(after)}\n`)])
}

// The number of the kind, then a cursor as lists have it.
function writePlace({ kind, at, id, mark }: Place, { to, binding }: Export): string {
  return `${kind}.${writeCursor({ at, id, total: 0, horizon: to, ...(mark !== undefined && { mark }) }, binding + kind)}`
}

function readPlace(cursor: string, binding: string): { place: Place; horizon: string } {
  const [, kind = '', inner = ''] = /^([0-9])\.(.+)$/.exec(cursor) ?? []
  const position = readCursor(inner, binding + kind)
  if (position?.horizon === undefined) {
    throw new ApiError(400, 'invalid_cursor', 'cursor must be from an export with the same from and to, unchanged.')
  }
  const { at, id, mark, horizon } = position
  return { place: { kind: Number(kind), at, id, mark }, horizon }
}

const PROJECT_HEADERS = {
  'X-Project-Id': {
    type: 'string',
    description: 'The project of the key, so that a copy is not continued with the key of another project.',
  },
  'X-Project-Created-At': {
    type: 'string',
    format: 'date-time',
    description:
      'If your copy has read another instant here, it is of another project with this id: empty it, and read everything again.',
  },
}

function ndjson(): object {
  const lines: Schema[] = EXPORT_KINDS.map(({ name, shape }) =>
    Type.Named(`${shape.name}Line`, {
      record: Type.Literal(name, { description: 'Kind of record.' }),
      data: shape.schema,
    }),
  )
  const cursor = Type.String({ description: 'Resumes the export after this line.' })
  const horizon = Type.String({
    format: 'date-time',
    description: 'The end of the window: the `from` of the next export.',
  })
  lines.push(Type.Named('ExportCursor', { cursor }))
  lines.push(Type.Named('ExportEnd', { horizon }))
  const schema = Type.Union(lines, { title: 'ExportLine', description: 'A line of the response.' })
  const text = Type.String({
    description: 'The same lines, sent if `Accept` names `text/plain` and not `application/x-ndjson`.',
  })
  return {
    ...success('A line for each record.', schema, { ...HORIZON, ...PROJECT_HEADERS }),
    content: { [MEDIA_TYPE]: { schema }, [PLAIN_TEXT]: { schema: text } },
  }
}
