// The result of an import over HTTP: its description, and the 400 when bad lines kept everything from being written.
import { REJECT_CODES } from '../../core/records/import/fields.ts'
import { ApiError } from '../../lib/errors.ts'
import { problem } from '../../lib/http/problems.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import type { Counts } from './tally.ts'

const count = (description: string) => Type.Integer({ description, minimum: 0 })

const code = Type.String({
  description: `Why, for programs. ${Object.entries(REJECT_CODES)
    .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
    .join(' ')}`,
  examples: ['unknown_reference'],
})
const reason = Type.String({ description: 'Why, for people.' })
const line = count('Number of the line, from 1.')
const index = count('Place of the record in `records`, from 0.')

const rejectedLine = Type.Object({ line, code, reason }, { title: 'RejectedLine' })
const rejectedRecord = Type.Object(
  { index: Type.Optional(index), line: Type.Optional(line), code, reason },
  { title: 'RejectedRecord' },
)

const HUNDRED = 'The first hundred bad lines, causes first.'
const RECORDS =
  'The bad records, causes first: all of a JSON body, at least the first hundred of newline-delimited JSON.'

const countsWith = (reject: Schema, rejects: string) => ({
  read: count('Lines that are not empty: the sum of the five below, unless reading stopped at the hundredth bad line.'),
  written: count('Lines that changed what is stored.'),
  unchanged: count('Lines that changed nothing: no new stamp, no event.'),
  skipped: count('Lines older than the stored record, or about a record that an import does not change.'),
  erased: count('Lines about erased people, stored without their personal data.'),
  rejected: count('Bad lines. Unless they are skipped, reading of lines stops at the hundredth.'),
  rejects: Type.Array(reject, { description: rejects }),
})

/** The bodies of a 200 and of a 400. */
export const importResult = Type.Named('ImportResult', countsWith(rejectedLine, HUNDRED))
export const recordsResult = Type.Named('RecordsResult', countsWith(rejectedRecord, RECORDS))

/** Other faults, for example of the query, have no counts. */
const problemWith = (title: string, counts: Record<string, Schema>) =>
  Type.Object(
    {
      ...problem.properties,
      ...Object.fromEntries(Object.entries(counts).map(([name, type]) => [name, Type.Optional(type)])),
    },
    { title },
  )
export const importProblem = problemWith('ImportProblem', importResult.properties)
export const recordsProblem = problemWith('RecordsProblem', recordsResult.properties)

/** The body of the response; throws the 400 when nothing was written because of bad lines. */
export function respond(
  counts: { read: number; rejected: number } & Counts & { written: number },
  rejects: object[],
  skipBad: boolean,
): object {
  const body = { ...counts, rejects }
  const { read, rejected } = counts
  if (rejected === 0 || (skipBad && rejected < read)) return body
  const bad = rejected === 1 ? '1 record is bad' : `${rejected} records are bad`
  throw new ApiError(400, 'records_rejected', `${bad}: nothing was written.`, { extra: body })
}
