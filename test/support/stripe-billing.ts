// The billing API of organizations whose merchant account is connected to the simulator with Stripe's API.
import assert from 'node:assert/strict'
import { type Connecting, connectAccount } from '../../src/payments/providers/connect.ts'
import type { ServerOptions } from '../../src/server/listeners/server.ts'
import { type Billing, type Organization, startBilling } from './billing.ts'
import { openStripeSimulator, type StripeSimulator, savedCard, TEST_KEY } from './simulators.ts'

export const MERCHANT = 'stripe-test'
/** The account that gets notifications, by its id at Stripe. */
export const NOTIFIED_MERCHANT = 'acct_1TundishDialect0'

export type StripeBilling = Awaited<ReturnType<typeof startStripeBilling>>
export type StripeAccount = Awaited<ReturnType<typeof connectStripe>>

export async function startStripeBilling(env: Record<string, string> = {}, options: ServerOptions = {}) {
  const stripe = await openStripeSimulator()
  const billing = await startBilling({ STRIPE_API_URL: stripe.url, ...env }, options)
  return {
    ...billing,
    stripe,
    client: stripe.client(),
    /** An organization with a connected account; its customers' cards are saved at Stripe. */
    async shop(id?: string) {
      const organization = await billing.organization(id)
      await connect(billing, organization, MERCHANT, { secretKey: TEST_KEY })
      return { ...organization, customerWithCard: customers(stripe, organization, MERCHANT) }
    },
    /** The successful payments of the account for an order. */
    charged: async (orderId: string) =>
      (await stripe.ledger()).filter(
        ({ type, metadata }) => type === 'charge' && metadata['tundish_order'] === orderId,
      ),
    /** Asserts that each successful order is one successful payment at Stripe, of the same amount. */
    async assertSameMoney() {
      const orders = await billing.db.query(
        `select order_id from orders where psp = 'stripe' and status = 'succeeded' order by 1`,
      )
      const charges = (await stripe.ledger()).filter(({ type }) => type === 'charge')
      const ours = charges.flatMap(({ metadata }) => metadata['tundish_order'] ?? [])
      assert.deepEqual(
        ours.sort(),
        orders.map(({ order_id }) => order_id),
      )
    },
    async stop() {
      await billing.stop()
      await stripe.cleanUp()
    },
  }
}

/** Connects an account whose notifications arrive at the server, and creates their endpoint at Stripe. */
export async function connectStripe(billing: StripeBilling, organization: Organization) {
  const { client, server, stripe } = billing
  const eventsUrl = `${server.url}/${organization.id}/v1/providers/stripe/${NOTIFIED_MERCHANT}/events`
  const endpoint = await client.webhookEndpoints.create({ url: eventsUrl, enabled_events: ['*'] })
  const secret = endpoint.secret!
  const webhookSecrets = ['whsec_anotherOne00', secret]
  await connect(billing, organization, NOTIFIED_MERCHANT, { secretKey: TEST_KEY, webhookSecrets })
  return {
    /** The endpoint at Stripe, its signing secret, and the URL to which Stripe sends notifications. */
    endpointId: endpoint.id,
    secret,
    eventsUrl,
    /** Replaces the stored signing secrets by these. */
    connect: (secrets: string[]) => connect(billing, organization, NOTIFIED_MERCHANT, { webhookSecrets: secrets }),
    customerWithCard: customers(stripe, organization, NOTIFIED_MERCHANT),
  }
}

async function connect({ server }: Billing, { id }: Organization, merchantId: string, given: Partial<Connecting>) {
  const { stripeApiUrl, providerTimeoutMs: deadlineMs } = server.app.config
  const name = { organizationId: id, psp: 'stripe', merchantId }
  await connectAccount({ ...server.app, stripeApiUrl, deadlineMs }, name, { isSandbox: true, ...given })
}

/** Makes customers whose card is saved at Stripe; with `profileId` of a new profile. */
const customers = (stripe: StripeSimulator, organization: Organization, merchantId: string) => {
  const client = stripe.client()
  return async (token?: string, profileId?: string) => {
    const card = await savedCard(client, token)
    const given = { psp: 'stripe', merchantId, token: card.payment_method }
    const external_id = await organization.customer({ ...given, ...(profileId !== undefined && { profileId }) })
    return { external_id, ...card }
  }
}
