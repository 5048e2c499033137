// The billing API of an organization whose merchant account is connected to the simulator with Stripe's API.
import assert from 'node:assert/strict'
import { connectAccount } from '../../src/payments/providers/connect.ts'
import type { ServerOptions } from '../../src/server/listeners/server.ts'
import { startBilling } from './billing.ts'
import type { Json } from './server.ts'
import { openStripeSimulator, savedCard, TEST_KEY } from './stripe-simulator.ts'

export const MERCHANT = 'stripe-test'

export type StripeBilling = Awaited<ReturnType<typeof startStripeBilling>>

export async function startStripeBilling(env: Record<string, string> = {}, options: ServerOptions = {}) {
  const stripe = await openStripeSimulator()
  const billing = await startBilling({ STRIPE_API_URL: stripe.url, ...env }, options)
  const client = stripe.client()
  return {
    ...billing,
    stripe,
    client,
    /** An organization with a connected account; its customers' cards are saved at Stripe. */
    async shop(id?: string) {
      const organization = await billing.organization(id)
      await connect(billing.server.app, organization.id)
      return {
        ...organization,
        async customerWithCard(token = 'pm_card_visa', profileId?: string) {
          const card = await savedCard(client, token)
          const external_id = await organization.customer({
            psp: 'stripe',
            merchantId: MERCHANT,
            token: card.payment_method,
            ...(profileId && { profileId }),
          })
          return { external_id, ...card }
        },
      }
    },
    /** The successful payments of the account for an order. */
    charged: async (orderId: string) =>
      (await stripe.ledger()).filter(
        ({ type, metadata }) => type === 'charge' && metadata['tundish_order'] === orderId,
      ),
    /** Asserts that each successful order is one successful payment at Stripe, of the same amount. */
    async assertSameMoney() {
      const orders = await billing.db.query(
        `select order_id, status, amount::text as amount, currency_code from orders where psp = 'stripe'`,
      )
      const charges = (await stripe.ledger()).filter(({ type }) => type === 'charge')
      const ours = charges.filter(({ metadata }) => metadata['tundish_order'])
      const succeeded = orders.filter(({ status }) => status === 'succeeded').map(({ order_id }) => order_id)
      assert.deepEqual(ours.map(({ metadata }) => metadata['tundish_order']).sort(), succeeded.sort())
    },
    async stop() {
      await billing.stop()
      await stripe.cleanUp()
    },
  }
}

async function connect(app: Json, organizationId: string): Promise<void> {
  const { db, seal, clock, config } = app
  const context = { db, seal, clock, stripeApiUrl: config.stripeApiUrl, deadlineMs: config.providerTimeoutMs }
  const name = { organizationId, psp: 'stripe', merchantId: MERCHANT }
  await connectAccount(context, name, { secretKey: TEST_KEY, isSandbox: true })
}
