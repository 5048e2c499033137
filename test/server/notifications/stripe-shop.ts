// An organization whose account at Stripe sends notifications to the server.
import { after, before } from 'node:test'
import type { Organization } from '../../support/billing.ts'
import {
  connectStripe,
  type StripeAccount,
  type StripeBilling,
  startStripeBilling,
} from '../../support/stripe-billing.ts'

/** For the tests of a file: the organization on its own server and simulator. */
export function setUpStripeShop() {
  let billing: StripeBilling
  let shop: Organization
  let account: StripeAccount
  before(async () => {
    billing = await startStripeBilling()
    shop = await billing.organization()
    account = await connectStripe(billing, shop)
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
      const { external_id: user } = await account.customerWithCard()
      const { body, text } = await shop.charge(user)
      if (body.checkout_status !== 'succeeded') throw new Error(text)
      const orderId: string = body.order_id
      const [movement] = await billing.charged(orderId)
      return { user, orderId, charge: movement!.id }
    },
    isActive: async (user: string): Promise<boolean> => (await shop.consumables(user))[0].is_active,
  }
}
