// An entry of the ledger of credits, as the billing API and the export show it.
import { decimal, instant, json, object, shape, text } from '../../lib/shape/shape.ts'

/** Without the zeros that the columns add. */
const credits = (column: string) => `trim_scale(${column})`
const uuid = (description: string) => text(description, { nullable: true })

export const ENTRY_ACCOUNTS = ['granted', 'spent', 'expired', 'revoked', 'adjusted']

const fields = {
  created_at: instant('When it was committed; unique and growing in the organization.'),
  entry_id: text('Identifier (UUID).', { example: '0198c1de-6a3c-7cc1-a9d4-3f1b7e5a9c20' }),
  external_id: text('The customer.', { example: 'ada' }),
  unit: text('The unit.', { example: 'tokens' }),
  account: text('The other side of the movement, which changes by the opposite amount.', {
    enum: ENTRY_ACCOUNTS,
    example: 'spent',
  }),
  amount: decimal('Change of the customer’s balance.', { sql: credits('e.amount'), example: -10 }),
  balance: decimal('The balance after it.', { sql: credits('e.balance'), example: 90 }),
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
}

export const creditEntry = shape('CreditEntry', 'e', fields)

const total = (column: string, description: string, example: number) =>
  decimal(description, { sql: credits(`a.${column}`), example })

/** The sums of an account `a`, as the export shows them. */
const creditTotals = {
  account_id: text('Identifier of the customer and unit, as in events.', { sql: 'a.account_id' }),
  balance: total('balance', 'Balance. Negative: a debt.', 90),
  granted: total('granted', 'Sum of the grants.', 100),
  spent: total('spent', 'Sum of what was spent.', 10),
  expired: total('expired', 'Sum of what has expired.', 0),
  revoked: total('revoked', 'Sum of what refunds and disputes took.', 0),
  adjusted: total('adjusted', 'Sum of the corrections; may be negative.', 0),
}

/** As the export shows it. */
export const creditEntryExport = shape('CreditEntryExport', 'e', {
  ...fields,
  updated_at: instant('When it was written, emptied by an erasure, or came to another profile with its customer.'),
  profile_id: text('Profile of the customer.', { sql: 'c.profile_id', nullable: true }),
  totals: object(
    'The customer’s sums in this unit when the entry was read. Those of the entry read last are current.',
    creditTotals,
  ),
})

/** The joins that its columns need, besides `credit_entries e`. */
export const CREDIT_JOINS = `
  join customers c on c.organization_id = e.organization_id and c.external_id = e.external_id
  join credit_accounts a on a.organization_id = e.organization_id and a.external_id = e.external_id and a.unit = e.unit`
