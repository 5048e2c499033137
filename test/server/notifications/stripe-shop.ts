// An organization whose account at Stripe sends notifications to the server.
import { after, before } from 'node:test'
import { emptyTally } from '../../../src/data/ingest/stripe/tally.ts'
import type { Organization } from '../../support/billing.ts'
import {
  connectStripe,
  NOTIFIED_MERCHANT,
  type StripeAccount,
  type StripeBilling,
  startStripeBilling,
} from '../../support/stripe-billing.ts'
import { until } from '../../support/time.ts'

/**
 * For the tests of a file or a `describe`: the organization on its own server and simulator. `isFollowed`: its project follows the
 * account. `worker`: whether the server does background work.
 */
export function setUpStripeShop({ isFollowed = false, worker = true } = {}) {
  let billing: StripeBilling
  let shop: Organization
  let account: StripeAccount
  before(async () => {
    billing = await startStripeBilling({}, { worker })
    shop = await billing.organization()
    account = await connectStripe(billing, shop)
    if (isFollowed) await followByNotifications(billing, shop)
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
    followByNotifications: () => followByNotifications(billing, shop),
    putOffReading: () => putOffReading(billing.db),
    isActive: async (user: string): Promise<boolean> => (await shop.consumables(user))[0].is_active,
  }
}

/** The project follows the account, and only by notifications: neither a command nor the server reads the list of events. */
async function followByNotifications({ db }: StripeBilling, shop: Organization): Promise<void> {
  await db.query(
    `insert into stripe_imports (organization_id, project_id, psp_merchant_id, options, background, status, step,
       events_since, tally, started_at, updated_at)
     values ($1, $2, $3, '{"follow": true}', false, 'following', 'events', db_clock(), $4, db_clock(), db_clock())`,
    [shop.id, shop.projectId, NOTIFIED_MERCHANT, JSON.stringify(emptyTally())],
  )
  await putOffReading(db)
}

/** The server does not read the list of events for half an hour: the end of a reading under way would set another time. */
async function putOffReading(db: StripeBilling['db']): Promise<void> {
  await until('no reading of the list of events to be under way', async () => {
    const rows = await db.query(`
      update merchant_accounts set notifications_due_at = db_clock() + interval '30 minutes'
      where notifications_lease_until is null returning 1`)
    return rows.length === 1
  })
}
