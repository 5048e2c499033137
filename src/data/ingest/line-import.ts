// Imports lines that a program makes from the objects of another service, and passes on each that cannot be imported.
import { Readable } from 'node:stream'
import type { RejectCode } from '../../core/records/import/fields.ts'
import { type Importing, type ImportOptions, type ImportResult, importRecords, type RejectedLine } from './load.ts'

/** One line of an import. */
export interface Line {
  record: string
  data: Record<string, unknown>
}

type LineImport = Pick<ImportOptions, 'live' | 'emitEvents' | 'dryRun' | 'signal'> & {
  onRejected: (line: Line, code: RejectCode, reason: string) => void
}

/** Imports pages of lines; `onRejected` receives each line that cannot be imported. */
export function importLines(
  app: Importing,
  { projectId }: { projectId: string },
  pages: Iterable<Line[]> | AsyncIterable<Line[]>,
  { onRejected, ...options }: LineImport,
): Promise<ImportResult> {
  const saveRejected = async (rejected: AsyncIterable<RejectedLine>) => {
    for await (const { bytes, code, reason } of rejected) onRejected(lineIn(bytes), code, reason)
  }
  const stream = () => Readable.from(textsOf(pages))
  // Fields that the service does not have stay as they are.
  const importing = { projectId, merge: true, skipBadLines: true, saveRejected, ...options }
  return importRecords(app, importing, [{ name: 'lines', stream }])
}

async function* textsOf(pages: Iterable<Line[]> | AsyncIterable<Line[]>): AsyncGenerator<Buffer> {
  for await (const lines of pages)
    yield Buffer.from(lines.map(({ record, data }) => `${JSON.stringify({ record, data })}\n`).join(''))
}

/** A line that is too long for memory comes in parts, which are no JSON. */
function lineIn(bytes: Buffer): Line {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return { record: 'unknown', data: { id: bytes.toString('utf8', 0, 60) } }
  }
}
