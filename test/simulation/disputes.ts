// Disputes of charges at the two-step provider: opened, decided, told to Tundish some time later, and compared with what it wrote.
import { recordDisputes } from '../../src/payments/billing/ledger/disputes.ts'
import { settleBefore } from '../../src/payments/billing/reconcile/notified.ts'
import { errorOf } from '../../src/payments/providers/provider.ts'
import type { Ledger } from './ledger.ts'
import { TWO_STEPS } from './provider.ts'
import { type Broken, first } from './rules.ts'
import { onServer, type Stage } from './stage.ts'
import type { State } from './state.ts'

const MAX_TRIES = 20

/** A customer disputes a charge, and perhaps the bank decides; notifications follow each of them, late and more than once. */
export async function dispute(stage: Stage): Promise<void> {
  const { scheduler, ledger, shop } = stage
  const { random } = scheduler
  const charges = ledger.movements.filter(
    ({ type, psp, transactionId }) =>
      type === 'charge' && psp === TWO_STEPS && ledger.disputesOf(transactionId).length === 0,
  )
  if (charges.length === 0 || shop.customers.every(({ merchant }) => merchant !== 'm2')) return
  const { transactionId, merchantId } = random.pick(charges)
  scheduler.tell(`${transactionId} is disputed`)
  ledger.dispute(scheduler.nowMs, transactionId, random.chance(0.8))
  void notify(stage, merchantId, transactionId)
  if (random.chance(0.3)) return
  await scheduler.sleep(random.between(1, 30_000))
  const status = random.chance(0.6) ? 'won' : 'lost'
  scheduler.tell(`the dispute of ${transactionId} is ${status}`)
  ledger.decide(transactionId, status, random.chance(0.8))
  await Promise.all([
    notify(stage, merchantId, transactionId),
    random.chance(0.3) && notify(stage, merchantId, transactionId),
  ])
}

/** The provider sends it again until it was handled, as `handle.ts` does. */
async function notify(stage: Stage, merchantId: string, chargeTransactionId: string): Promise<void> {
  const { scheduler, shop } = stage
  let isHandled = false
  for (let tries = 0; !isHandled && tries < MAX_TRIES; tries++) {
    await scheduler.sleep(scheduler.random.between(1, 10_000))
    void onServer(stage, `notify of a dispute of ${chargeTransactionId}`, async ({ context }) => {
      const all = await context.providers.all()
      const { provider } = all.find((one) => one.provider.merchantId === merchantId)!
      const at = { psp: TWO_STEPS, merchantId, organizationId: shop.organization }
      await settleBefore(context, provider, at, chargeTransactionId)
      const disputes = await provider.disputesOf!({ chargeTransactionId })
      if (!Array.isArray(disputes)) throw errorOf(disputes)
      await recordDisputes(context, at, disputes)
      isHandled = true
    })
  }
}

/** What was written about disputes is what the provider says, at the latest when everything has come to rest. */
export function disputeRules({ orders }: State, ledger: Ledger, isAtRest: boolean): (() => Broken)[] {
  return orders.map(({ order_id, charge, minor, status, disputes, rows }) => () => {
    const truth = charge === null ? [] : ledger.disputesOf(charge)
    const unknown = disputes.find(({ id }) => !truth.some(({ disputeId }) => disputeId === id))
    if (unknown) return `the dispute ${unknown.id} is not at the provider`
    const booked = (type: string) => rows.filter((row) => row.type === type).map((row) => row.minor)
    return first([
      () =>
        booked('chargeback').length !== disputes.filter(({ is_withdrawn }) => is_withdrawn).length &&
        `chargebacks of ${booked('chargeback')} for ${order_id}`,
      () =>
        booked('chargeback_reversal').length !== disputes.filter(({ is_reinstated }) => is_reinstated).length &&
        `reversals of ${booked('chargeback_reversal')} for ${order_id}`,
      () =>
        booked('chargeback').some((back) => back !== minor) && `a chargeback of ${booked('chargeback')} of ${minor}`,
      ...truth.map(({ disputeId, status: decided, fundsWithdrawn, reinstatedMinor }) => () => {
        if (!isAtRest || status !== 'succeeded') return undefined
        const here = disputes.find(({ id }) => id === disputeId)
        const isTrue =
          here?.status === decided &&
          here.is_withdrawn === fundsWithdrawn &&
          here.is_reinstated === (fundsWithdrawn && reinstatedMinor > 0n)
        return !isTrue && `the dispute ${disputeId} is ${decided} at the provider and ${here?.status} here`
      }),
    ])
  })
}
