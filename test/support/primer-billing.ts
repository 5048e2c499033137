// A merchant account at the Primer simulator, connected to an organization, with webhooks to the server.
import { after, before } from 'node:test'
import { connectAccount } from '../../src/payments/providers/connect.ts'
import { type Billing, type Organization, startBilling } from './billing.ts'
import { openPrimerSimulator, PRIMER_KEY, type PrimerSimulator } from './simulators.ts'

export const PRIMER_MERCHANT = 'primer-test'
export const PRIMER_SECRET = 'webhook-secret-0001'

export async function connectPrimer({ server }: Billing, shop: Organization, primer: PrimerSimulator) {
  const name = { organizationId: shop.id, psp: 'primer', merchantId: PRIMER_MERCHANT }
  const eventsUrl = `${server.url}/${shop.id}/v1/providers/primer/${PRIMER_MERCHANT}/events`
  const connect = async (webhookSecrets: string[], secretKey?: string) => {
    const given = { isSandbox: true, webhookSecrets, ...(secretKey !== undefined && { secretKey }) }
    const context = { ...server.app, stripeApiUrl: undefined, apiUrls: { primer: primer.url }, deadlineMs: 10_000 }
    await connectAccount(context, name, given)
  }
  await primer.control('/webhook', { url: eventsUrl, secret: PRIMER_SECRET })
  await connect([PRIMER_SECRET], PRIMER_KEY)
  let made = 0
  return {
    eventsUrl,
    /** Replaces the stored signing secrets by these. */
    connect,
    /** A customer with a payment method saved at Primer, which behaves as the token says. */
    async customer(token = 'tok_visa', profileId?: string) {
      const card = `${token}~${shop.id}-${++made}`
      const customer = `person-${shop.id}-${made}`
      await primer.control('/tokens', { token: card, customer })
      const given = { token: card, psp: 'primer', merchantId: PRIMER_MERCHANT }
      const user = await shop.customer({ ...given, ...(profileId !== undefined && { profileId }) })
      return { user, card, customer }
    },
  }
}

/** For the tests of a file: an organization with such an account, on its own server and simulator. */
export function setUpPrimerShop() {
  let billing: Billing
  let primer: PrimerSimulator
  let shop: Organization
  let account: Awaited<ReturnType<typeof connectPrimer>>
  before(async () => {
    primer = await openPrimerSimulator()
    billing = await startBilling({ PRIMER_API_URL: primer.url })
    shop = await billing.organization()
    account = await connectPrimer(billing, shop, primer)
  })
  after(async () => {
    await billing.stop()
    await primer.cleanUp()
  })
  return {
    get billing() {
      return billing
    },
    get primer() {
      return primer
    },
    get shop() {
      return shop
    },
    get account() {
      return account
    },
    /** A charge of 10.50 USD that succeeds, and its payment at Primer. */
    async charged(token?: string) {
      const person = await account.customer(token)
      const { body, text } = await shop.charge(person.user)
      if (body.checkout_status !== 'succeeded') throw new Error(text)
      return { ...person, orderId: String(body.order_id), payment: await paymentOf(primer, body.order_id) }
    },
    rowsOf: async (orderId: string) =>
      (await shop.report({ order_id: orderId })).map(
        (row) => `${row.psp_transaction_type} ${row.status} ${Number(row.amount)}`,
      ),
    isActive: async (user: string): Promise<boolean> => (await shop.consumables(user))[0].is_active,
    /** Has stored webhooks that failed handled now, not minutes later: as those of a clock that was set back since. */
    retry: () =>
      billing.db.query(
        `update pending_notifications set due_at = db_clock() + interval '1 day', lease_until = db_clock() + interval '1 day'`,
      ),
  }
}

/** The payment of an order, by its metadata in the list. */
export async function paymentOf(primer: PrimerSimulator, orderId: string): Promise<string> {
  const { body } = await primer.call('GET', '/payments')
  const all = body['data'] as { id: string; metadata: Record<string, string> }[]
  return all.find(({ metadata }) => metadata['tundish_order'] === orderId)!.id
}
