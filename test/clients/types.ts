// The client as TypeScript sees it: checked by the compiler alone, with the rest of the sources.
import { type Change, Tundish, type WebhookEvent, webhooks } from '../../clients/js/src/index.ts'

const tundish = new Tundish({
  url: 'http://127.0.0.1:8080',
  projectKey: 'key',
  organization: { id: 'demo', key: 'key' },
})

/** As the README takes a change apart. */
export async function changed(since: string | undefined, store: (list: Change['list'], item: Change['item']) => void) {
  let projectCreatedAt: string | undefined
  for await (const { list, item, horizon, voidFrom, projectCreatedAt: at } of tundish.changes({
    since,
    projectCreatedAt,
  })) {
    if (list) store(list, item)
    else if (voidFrom) store('profiles', await tundish.profiles.get(voidFrom))
    else [since, projectCreatedAt] = [horizon, at]
  }
  return { since, projectCreatedAt }
}

/** A change is narrowed by its list. */
export async function emails(): Promise<(string | null)[]> {
  const found: (string | null)[] = []
  for await (const change of tundish.changes()) if (change.list === 'profiles') found.push(change.item.email)
  return found
}

/** Filters and keys are checked. */
export async function typed(event: WebhookEvent): Promise<string | null> {
  // @ts-expect-error: no such status
  tundish.subscriptions.list({ status: 'nope' })
  // @ts-expect-error: no such filter
  tundish.profiles.list({ color: 'red' })
  // @ts-expect-error: a charge needs its key
  await tundish.billing.charge({ externalId: 'ada', amount: '1.00', currencyCode: 'USD' })
  if (event.type === 'profile.created') return event.data.email
  const known: WebhookEvent = webhooks.unwrap('{}', new Headers(), 'whsec_')
  return known.type
}

/** What an optional setting or field may have not, is left out. */
export async function optional(given: { [Name in 'reason' | 'locale']?: string }, signal: AbortSignal | undefined) {
  const { reason, locale } = given
  const client = new Tundish({
    url: 'http://127.0.0.1:8080',
    projectKey: reason,
    timeoutMs: undefined,
    fetch: undefined,
  })
  client.session({ id: 'ses_ada', locale })
  await client.billing.refund({ externalId: 'ada', orderId: 'order', reason, signal })
  for await (const { id } of client.profiles.list({ updatedFrom: reason, signal }))
    await client.profiles.get(id, { signal })
}

interface Cart {
  cart: string
}

/** Objects of interfaces are metadata. */
export async function interfaces(cart: Cart, session: { id: string; query_params: Cart }) {
  const key = { externalId: 'ada', idempotencyKey: 'order 7' }
  await tundish.billing.charge({ ...key, amount: '1.00', currencyCode: 'USD', clientMetadata: cart })
  await tundish.billing.credits.spend({ ...key, unit: 'tokens', amount: '1', metadata: cart })
  tundish.session(session)
}
