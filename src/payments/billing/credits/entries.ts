// The ledger's entries, walked in the order of commits.
import { limited } from '../../../core/lists/statements.ts'
import type { Param, Statement } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { decimal, instant, json, shape, text } from '../../../lib/shape/shape.ts'
import { readInstant } from '../../../lib/time.ts'
import { externalId } from '../body.ts'
import { unitIn } from './requests.ts'

/** Without the zeros that the columns add. */
const credits = (column: string) => `trim_scale(e.${column})`
const uuid = (description: string) => text(description, { nullable: true })

export const creditEntry = shape('CreditEntry', 'e', {
  created_at: instant('When it was committed; unique and growing in the organization.'),
  entry_id: text('Identifier (UUID).', { example: '0198c1de-6a3c-7cc1-a9d4-3f1b7e5a9c20' }),
  external_id: text('The customer.', { example: 'ada' }),
  unit: text('The unit.', { example: 'tokens' }),
  account: text('The other side of the movement, which changes by the opposite amount.', {
    enum: ['granted', 'spent', 'expired', 'revoked', 'adjusted'],
    example: 'spent',
  }),
  amount: decimal('Change of the customer’s balance.', { sql: credits('amount'), example: -10 }),
  balance: decimal('The balance after it.', { sql: credits('balance'), example: 90 }),
  cause: text('What it came from.', { example: 'spend' }),
  grant_id: uuid('The grant, if it is about a single one.'),
  hold_id: uuid('The hold that was captured.'),
  order_id: uuid('Order of the charge that granted it.'),
  idempotency_key: text('Key of the request.', { nullable: true }),
  reason: text('Why it was adjusted; null after an erasure.', { nullable: true }),
  metadata: json('Metadata of the request; null if there was none, and after an erasure.', {
    nullable: true,
    schema: { type: 'object', additionalProperties: true },
  }),
})

export const entriesIn = Type.Object(
  {
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
  },
  { title: 'CreditsEntriesIn', additionalProperties: false },
)

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
