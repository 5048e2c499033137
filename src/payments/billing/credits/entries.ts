// The ledger's entries, walked in the order of commits.
import { limited } from '../../../core/lists/statements.ts'
import { creditEntry } from '../../../core/records/credit-entry.ts'
import type { Param, Statement } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { readInstant } from '../../../lib/time.ts'
import { externalId } from '../body.ts'
import { unitIn } from './requests.ts'

export const entriesIn = Type.Named('CreditsEntriesIn', {
  external_id: Type.Optional(externalId),
  unit: Type.Optional(unitIn),
  after: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Only entries with a later `created_at`: pass that of the last entry to read on.',
      examples: ['2026-01-31T23:59:59.123456Z'],
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 500, default: 100, description: 'Maximum number of entries.' }),
  ),
})

export interface EntriesRequest {
  external_id?: string
  unit?: string
  after?: string
  limit?: number
}

export const entriesOut = Type.Object(
  { entries: Type.Array(creditEntry.schema, { description: 'Oldest first.' }) },
  { title: 'CreditsEntries' },
)

export const limitOf = ({ limit = 100 }: EntriesRequest) => limit

/** One statement for each set of filters, so that each walks the index that fits. */
export function entriesStatement(organizationId: string, request: EntriesRequest): [Statement, Param[]] {
  const { external_id, unit, after } = request
  const params: Param[] = [organizationId, after === undefined ? '-infinity' : readInstant(after)]
  const given = Object.entries({ external_id, unit }).filter(([, value]) => value !== undefined) as [string, string][]
  const where = given.map(([name, value]) => ` and e.${name} = $${params.push(value)}`).join('')
  const limit = limitOf(request)
  const statement = (most: number) => `
    select ${creditEntry.columns} from credit_entries e
    where e.organization_id = $1 and e.created_at > $2::timestamptz${where} order by e.created_at limit ${most}`
  return [limited(['credit entries', ...given.map(([name]) => name)].join(' '), limit, limit, statement), params]
}
