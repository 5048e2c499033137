// What a user does with the client, in plain JavaScript of the web: the same in every runtime.
import { Tundish, TundishConnectionError, TundishError, webhooks } from '@tundish/client'

/** Returns what the client read and did, for the test to compare. */
export async function scenario({ url, projectKey, organization, externalId, webhook, redirects }) {
  const sent = []
  let lose = 0
  // A network that loses responses: the request arrives, its response does not.
  const flaky = async (input, init) => {
    const response = await fetch(input, init)
    sent.push(new URL(input).pathname)
    if (lose === 0) return response
    lose -= 1
    await response.text()
    throw new TypeError('connection lost')
  }
  const tundish = new Tundish({ url: `${url}/`, projectKey, organization, fetch: flaky, retries: 2 })
  const result = {}

  const ids = []
  for await (const { id } of tundish.profiles.list({ limit: 7 })) ids.push(id)
  result.profiles = ids.length
  result.total = await tundish.profiles.list().total()
  result.active = (await tundish.subscriptions.list({ status: 'active' }).all()).map(({ id }) => id)
  result.reply = (await tundish.sessions.replies('session'))[0].state.value

  lose = 1
  const order = { externalId, amount: '10.50', currencyCode: 'USD', idempotencyKey: 'once' }
  const charge = await tundish.billing.chargeUntilSettled(order)
  result.charge = [charge.checkout_status, charge.idempotent_replay]
  const { consumables } = await tundish.billing.assets(externalId)
  result.consumables = consumables.map(({ amount, is_active }) => [amount, is_active])
  const refund = await tundish.billing.refund({
    externalId,
    orderId: charge.order_id,
    amount: '0.50',
    idempotencyKey: 'r',
  })
  result.refund = [refund.refund_status, refund.amount, refund.amount_refunded]
  result.report = []
  for await (const row of tundish.billing.report()) if (row.order_id === charge.order_id) result.report.push(row.amount)

  const refusals = [
    () => tundish.profiles.get('nobody'),
    () => new Tundish({ url, projectKey: 'wrong' }).funnels.list().all(),
    () => tundish.billing.charge({ ...order, amount: '11' }),
  ]
  result.refusals = []
  for (const refusal of refusals) {
    const error = await refusal().catch((error) => error)
    const { status, code, requestId } = error
    result.refusals.push([error instanceof TundishError, status, code, requestId.length > 0])
  }
  lose = 3
  const lost = await tundish.funnels.get('funnel').catch((error) => error)
  result.lost = [lost instanceof TundishConnectionError, sent.filter((path) => path.endsWith('/funnels/funnel')).length]
  lose = 0

  const moved = await new Tundish({ url: redirects, projectKey }).funnels.get('funnel').catch((error) => error)
  result.redirected = [moved instanceof TundishError, moved.message]

  const seen = {}
  for await (const { list, horizon } of tundish.changes()) {
    if (list) seen[list] = (seen[list] ?? 0) + 1
    else result.horizon = horizon
  }
  result.changes = seen

  const event = webhooks.unwrap(webhook.body, webhook.headers, webhook.secret)
  result.event = [event.type, event.data.id]
  try {
    webhooks.unwrap(`${webhook.body} `, webhook.headers, webhook.secret)
  } catch (error) {
    result.forged = error.name
  }
  return result
}
