// The likely twins of a person: other profiles of the project with the same e-mail address or customer.
import type { App } from '../../app.ts'
import { findTwins } from '../../core/erasure/twins.ts'
import { mergeOrder } from '../../core/people/order.ts'
import { Type } from '../../lib/shape/schema.ts'

export const twinsSchema = Type.Array(
  Type.Named('Twin', {
    id: Type.String({ description: 'The other profile.' }),
    reason: Type.String({
      enum: ['email', 'customer'],
      description:
        '`email`: the same address. `customer`: the same customer, or a session of one led to a payment of the other.',
    }),
    merge_from: Type.String({ description: 'Of the two, the profile to merge into the other.' }),
    merge_into: Type.String({ description: 'The profile that should remain.' }),
  }),
  { description: 'Other profiles of the project that are probably the same person, at most 50.' },
)

export async function twinsOf({ db }: Pick<App, 'db'>, projectId: string, profileId: string) {
  const twins = await findTwins(db.query, projectId, [profileId])
  const order = await mergeOrder(db.query, projectId, [profileId, ...twins.map(({ twin_id }) => twin_id)])
  return twins.map(({ twin_id: id, reason }) => {
    const { from, into } = order(profileId, id)
    return { id, reason, merge_from: from, merge_into: into }
  })
}
