// The items of a subscription, which itself shows only the first ten.
import { type Call, type Dialect, existing, required, route } from './call.ts'
import { missing } from './errors.ts'
import { LIST_PARAMS, list } from './lists.ts'

export const subscriptionItemRoutes = [
  route('GET', '/v1/subscription_items', [...LIST_PARAMS, 'subscription'], listAll),
  route('GET', '/v1/subscription_items/:id', [], findOne),
]

function listAll(dialect: Dialect, call: Call): object {
  const { items } = existing(dialect, 'subscription', required(call, 'subscription'), 'subscription')
  // In the order of the subscription.
  return list(call, items.data.toReversed())
}

function findOne({ state }: Dialect, call: Call): object {
  for (const { items } of state.all('subscription')) {
    const found = items.data.find(({ id }) => id === call.id)
    if (found) return found
  }
  throw missing('subscription_item', call.id, 'id', 404)
}
