// The part of an erasure's receipt about payment providers.
import type { Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { instant, shape, text } from '../../lib/shape/shape.ts'

const atProvider = shape('ErasureAtProvider', 'e', {
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Merchant account at the provider.'),
  target: text('The provider’s id of the customer, or of a saved card or a payment whose customer is looked up.', {
    example: 'cus_NffrFeUfNV2Hib',
  }),
  how: text('`empty` removes the personal data of the customer, `delete` the customer.', { enum: ['empty', 'delete'] }),
  status: text('`pending` until the provider has confirmed it; `unreachable` if no customer is found there.', {
    sql: `case when e.done_at is not null then 'done' when e.next_attempt_at is null then 'unreachable' else 'pending' end`,
    enum: ['pending', 'done', 'unreachable'],
  }),
  why: text('Why the last attempt failed, or the customer is unreachable.', { nullable: true }),
  done_at: instant('When it was done.', { nullable: true }),
})

/** A field of the receipt. */
export const atProviders = Type.Array(atProvider.schema, {
  description: 'Erasures at payment providers, if the organization has set `erase_at_provider`.',
})

const LIST = `select ${atProvider.namedColumns} from provider_erasures e
  where e.project_id = $1 and e.profile_id = $2 order by e.psp, e.psp_merchant_id, e.target`

export async function listAtProviders(query: Query, projectId: string, profileId: string) {
  const rows = await query(LIST, [projectId, profileId])
  return rows.map((row) => atProvider.readNamed(row))
}
