// A merchant account at the Stripe simulator, connected to an organization, with notifications that reach the server.
import { connectAccount } from '../../src/providers/connect.ts'
import type { Billing, Organization } from './billing.ts'
import { type StripeSimulator, savedCard, TEST_KEY } from './stripe-simulator.ts'

export const MERCHANT = 'acct_1TundishDialect0'

export interface StripeAccount {
  /** A signing secret of its notifications. */
  secret: string
  /** Where Stripe sends them. */
  eventsUrl: string
  /** A customer of the organization whose card is saved at Stripe. */
  customer(token?: string): Promise<{ user: string; card: { customer: string; payment_method: string } }>
}

export async function connectStripe(billing: Billing, shop: Organization, stripe: StripeSimulator) {
  const { app, url } = billing.server
  const eventsUrl = `${url}/${shop.id}/v1/providers/stripe/${MERCHANT}/events`
  const client = stripe.client()
  const { secret } = await client.webhookEndpoints.create({ url: eventsUrl, enabled_events: ['*'] })
  const name = { organizationId: shop.id, psp: 'stripe', merchantId: MERCHANT }
  const given = { isSandbox: true, secretKey: TEST_KEY, webhookSecrets: ['whsec_anotherOne00', secret!] }
  await connectAccount({ ...app, stripeApiUrl: stripe.url, deadlineMs: 10_000 }, name, given)
  const account: StripeAccount = {
    secret: secret!,
    eventsUrl,
    async customer(token) {
      const card = await savedCard(client, token)
      const user = await shop.customer({ token: card.payment_method, psp: 'stripe', merchantId: MERCHANT })
      return { user, card }
    },
  }
  return account
}
