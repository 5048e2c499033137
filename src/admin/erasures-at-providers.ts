// The part of an erasure's receipt about payment providers.
import type { Query } from '../lib/pg/types.ts'
import { Type } from '../lib/shape/schema.ts'
import { instant, shape, text } from '../lib/shape/shape.ts'

const atProvider = shape('ErasureAtProvider', 'e', {
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('The merchant account there.'),
  target: text('The provider’s id of its customer, or of the saved card that leads to it.', {
    example: 'cus_NffrFeUfNV2Hib',
  }),
  how: text('`empty` removes the personal data there, `delete` the customer.', { enum: ['empty', 'delete'] }),
  status: text('`pending` until the provider has done it.', {
    sql: `case when e.done_at is null then 'pending' else 'done' end`,
    enum: ['pending', 'done'],
  }),
  why: text('Why the last attempt did not succeed.', { nullable: true }),
  done_at: instant('When it was done.', { nullable: true }),
})

/** A field of the receipt. */
export const atProviders = Type.Array(atProvider.schema, {
  description: 'At payment providers, where the organization asks for it with `erase_at_provider`.',
})

const LIST = `select ${atProvider.namedColumns} from provider_erasures e
  where e.project_id = $1 and e.profile_id = $2 order by e.psp, e.psp_merchant_id, e.target`

export async function listAtProviders(query: Query, projectId: string, profileId: string): Promise<object[]> {
  const rows = await query(LIST, [projectId, profileId])
  return rows.map((row) => JSON.parse(atProvider.writeNamed(row).toString()))
}
