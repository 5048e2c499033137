// A merchant account at the Stripe simulator, connected to an organization, with notifications to the server.
import { after, before } from 'node:test'
import { connectAccount } from '../../src/payments/providers/connect.ts'
import type { Billing, Organization } from './billing.ts'
import { type StripeBilling, startStripeBilling } from './stripe-billing.ts'
import { type StripeSimulator, savedCard, TEST_KEY } from './stripe-simulator.ts'

export const MERCHANT = 'acct_1TundishDialect0'

export interface StripeAccount {
  /** The endpoint of its notifications at Stripe, and its signing secret. */
  endpointId: string
  secret: string
  /** The URL to which Stripe sends them. */
  eventsUrl: string
  /** Replaces the stored signing secrets by these. */
  connect(webhookSecrets: string[]): Promise<void>
  /** A customer of the organization whose card is saved at Stripe; with `profileId` of a new profile. */
  customer(
    token?: string,
    profileId?: string,
  ): Promise<{ user: string; card: { customer: string; payment_method: string } }>
}

export async function connectStripe(billing: Billing, shop: Organization, stripe: StripeSimulator) {
  const { app, url } = billing.server
  const eventsUrl = `${url}/${shop.id}/v1/providers/stripe/${MERCHANT}/events`
  const client = stripe.client()
  const { id, secret } = await client.webhookEndpoints.create({ url: eventsUrl, enabled_events: ['*'] })
  const name = { organizationId: shop.id, psp: 'stripe', merchantId: MERCHANT }
  const connect = async (webhookSecrets: string[], secretKey?: string) => {
    const given = { isSandbox: true, webhookSecrets, ...(secretKey !== undefined && { secretKey }) }
    await connectAccount({ ...app, stripeApiUrl: stripe.url, deadlineMs: 10_000 }, name, given)
  }
  await connect(['whsec_anotherOne00', secret!], TEST_KEY)
  const account: StripeAccount = {
    endpointId: id,
    secret: secret!,
    eventsUrl,
    connect,
    async customer(token, profileId) {
      const card = await savedCard(client, token)
      const user = await shop.customer({
        token: card.payment_method,
        psp: 'stripe',
        merchantId: MERCHANT,
        ...(profileId !== undefined && { profileId }),
      })
      return { user, card }
    },
  }
  return account
}

/** For the tests of a file: an organization with such an account, on its own server and simulator. */
export function setUpStripeShop() {
  let billing: StripeBilling
  let shop: Organization
  let account: StripeAccount
  before(async () => {
    billing = await startStripeBilling()
    shop = await billing.organization()
    account = await connectStripe(billing, shop, billing.stripe)
  })
  after(() => billing.stop())
  return {
    get stripe() {
      return billing.stripe
    },
    get billing() {
      return billing
    },
    get shop() {
      return shop
    },
    get account() {
      return account
    },
    /** A successful charge of 10.50 USD, and its id at Stripe. */
    async charged() {
      const { user, card } = await account.customer()
      const { body, text } = await shop.charge(user)
      if (body.checkout_status !== 'succeeded') throw new Error(text)
      const orderId: string = body.order_id
      const movement = (await billing.stripe.ledger()).find(({ metadata }) => metadata['tundish_order'] === orderId)
      return { user, card, orderId, charge: movement!.id }
    },
    isActive: async (user: string): Promise<boolean> => (await shop.consumables(user))[0].is_active,
  }
}
