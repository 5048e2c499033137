// A purchase as Stripe sees it: what happens to it there, the events that tell of it, and what must be here in the end.
import assert from 'node:assert/strict'
import type { Organization } from '../../support/billing.ts'
import type { StripeSimulator } from '../../support/simulators.ts'
import type { StripeAccount } from '../../support/stripe-billing.ts'

export const STEPS = ['refund a part', 'refund the rest', 'fail a refund', 'dispute', 'win', 'lose'] as const
export type Step = (typeof STEPS)[number] | 'settle'

const AMOUNT = 1050
const PART = 300
const PROCESSING_MS = 60_000

export interface Purchase {
  user: string
  orderId: string
  charge: string
  refunds: { id: string; amount: number; hasFailed: boolean }[]
  dispute: { id: string; status: 'open' | 'won' | 'lost'; isReturned: boolean } | undefined
  /** The bodies of its events, oldest first. */
  events: string[]
  told: string[]
}

export function openWorld(stripe: StripeSimulator, shop: Organization, account: StripeAccount) {
  const client = stripe.client()
  const seen = new Set<string>()

  async function newEvents(): Promise<string[]> {
    const { data } = await client.events.list({ limit: 100 })
    const fresh = data.filter(({ id }) => !seen.has(id)).reverse()
    for (const { id } of fresh) seen.add(id)
    return fresh.map((event) => JSON.stringify(event))
  }

  return {
    /** A charge that Stripe is still processing. */
    async begin(): Promise<Purchase> {
      const { external_id: user } = await account.customerWithCard(`pm_sim_processing_${PROCESSING_MS}ms`)
      const { body, text } = await shop.charge(user)
      assert.equal(body.checkout_status, 'processing', text)
      await newEvents()
      return { user, orderId: body.order_id, charge: '', refunds: [], dispute: undefined, events: [], told: [] }
    },

    /** What cannot happen now does not. */
    async take(purchase: Purchase, step: Step): Promise<void> {
      const { charge, dispute, refunds } = purchase
      const left = AMOUNT - paidBack(purchase)
      const refund = async (amount: number) => {
        const { id } = await stripe.control<{ id: string }>('/refunds', { charge, amount })
        refunds.push({ id, amount, hasFailed: false })
      }
      const close = async (status: 'won' | 'lost') => {
        await stripe.control(`/disputes/${dispute!.id}/close`, { status })
        dispute!.status = status
        dispute!.isReturned = status === 'won' || paidBack(purchase) > 0
      }
      const succeeded = refunds.find(({ hasFailed }) => !hasFailed)
      if (step === 'settle') {
        await stripe.control('/clock', { advance_ms: PROCESSING_MS })
        const movement = (await stripe.ledger()).find(({ metadata }) => metadata['tundish_order'] === purchase.orderId)
        purchase.charge = movement!.id
      } else if (step === 'refund a part' && left > PART && dispute?.status !== 'open') await refund(PART)
      else if (step === 'refund the rest' && left > 0 && dispute?.status !== 'open') await refund(left)
      else if (step === 'fail a refund' && succeeded) {
        await stripe.control(`/refunds/${succeeded.id}/fail`)
        succeeded.hasFailed = true
      } else if (step === 'dispute' && !dispute) {
        const { id } = await stripe.control<{ id: string }>('/disputes', { charge })
        purchase.dispute = { id, status: 'open', isReturned: false }
      } else if (step === 'win' && dispute?.status === 'open') await close('won')
      else if (step === 'lose' && dispute?.status === 'open') await close('lost')
      else return
      purchase.told.push(step)
      purchase.events.push(...(await newEvents()))
    },

    expected(purchase: Purchase): object {
      const { dispute, refunds } = purchase
      const active = paidBack(purchase) < AMOUNT && (!dispute || dispute.status === 'won')
      return {
        status: 'succeeded',
        refunded: String(paidBack(purchase) / 100),
        dispute: dispute?.status ?? null,
        told_active: String(active),
        told_disputed: dispute ? '1' : '0',
        told_won: dispute?.status === 'won' ? '1' : '0',
        active,
        sales: 1,
        refunds: refunds.filter(({ hasFailed }) => !hasFailed).length,
        chargebacks: dispute ? 1 : 0,
        reversals: dispute?.isReturned ? 1 : 0,
      }
    },
  }
}

const paidBack = ({ refunds }: Purchase) =>
  refunds.filter(({ hasFailed }) => !hasFailed).reduce((sum, { amount }) => sum + amount, 0)
