// The result of an import over HTTP: its description, and the 400 when bad lines kept everything from being written.
import { REJECT_CODES } from '../../core/records/import/fields.ts'
import { ApiError } from '../../lib/errors.ts'
import { problem } from '../../lib/http/problems.ts'
import { Type } from '../../lib/shape/schema.ts'
import type { ImportResult } from './load.ts'

const count = (description: string) => Type.Integer({ description, minimum: 0 })

const reject = Type.Object(
  {
    line: count('Number of the line, from 1.'),
    code: Type.String({
      description: `Why, for programs. ${Object.entries(REJECT_CODES)
        .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
        .join(' ')}`,
      examples: ['unknown_reference'],
    }),
    reason: Type.String({ description: 'Why, for people.' }),
  },
  { title: 'RejectedLine' },
)

const counts = {
  read: count('Lines that are not empty: the sum of the five below, unless reading stopped at the hundredth bad line.'),
  written: count('Lines that changed what is stored.'),
  unchanged: count('Lines that changed nothing: no new stamp, no event.'),
  skipped: count('Lines older than the stored record, or about a record that an import does not change.'),
  erased: count('Lines about erased people, stored without their personal data.'),
  rejected: count('Bad lines. Unless they are skipped, reading stops at the hundredth.'),
  rejects: Type.Array(reject, { description: 'The first hundred bad lines, causes first.' }),
}

export const importResult = Type.Object(counts, { title: 'ImportResult', additionalProperties: false })

/** The body of the 400. */
export const importProblem = Type.Object({ ...problem.properties, ...counts }, { title: 'ImportProblem' })

/** The body of the response; throws the 400 when nothing was written because of bad lines. */
export function respond({ stopped: _, rejects, ...result }: ImportResult, skipBadLines: boolean): object {
  const body = { ...result, rejects: rejects.map(({ line, code, reason }) => ({ line, code, reason })) }
  const { read, rejected } = result
  if (rejected === 0 || (skipBadLines && rejected < read)) return body
  const bad = rejected === 1 ? '1 line is bad' : `${rejected} lines are bad`
  throw new ApiError(400, 'records_rejected', `${bad}: nothing was written.`, { extra: body })
}
