// The sums of an order's refunds: of all, and of those that moved money.
import { formatMinor } from '../../../lib/money.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { minorFromDatabase } from '../amount.ts'

/** A refund, and the sums of its order as they are in the database. */
interface Summed {
  organization_id: string
  order_id: string
  amount: string
  currency_code: string
  soft_refund: 't' | 'f'
  order_amount: string
  amount_refunded_hard: string
  /** The sum of the soft refunds of the order that succeeded. */
  amount_refunded_soft: string
}

export interface Sums {
  amount_refunded: string
  amount_refunded_hard: string
  /** Whether the refunds that moved money added up to the whole amount before, and whether they do now. */
  wasWhole: boolean
  isWhole: boolean
}

/** SQL of `amount_refunded_soft`, of an order `o`. */
export const SOFT_SUM = `(select coalesce(sum(s.amount), 0) from refunds s where s.organization_id = o.organization_id
  and s.order_id = o.order_id and s.soft_refund and s.status = 'succeeded')`

/** The sums of the order when this refund is added, or taken away. */
export function sumsAfter(what: 'added' | 'removed', refund: Summed): Sums {
  const { currency_code, soft_refund } = refund
  const minor = (text: string) => minorFromDatabase(text, currency_code)
  const amount = what === 'added' ? minor(refund.amount) : -minor(refund.amount)
  const [soft, hard] = soft_refund === 't' ? [amount, 0n] : [0n, amount]
  const whole = minor(refund.order_amount)
  const hardBefore = minor(refund.amount_refunded_hard)
  const hardSum = hardBefore + hard
  // The provider may pay back what a soft refund counts as refunded. The database refuses a sum of such payments above the amount.
  const sum = hardSum + minor(refund.amount_refunded_soft) + soft
  const capped = sum > whole && hardSum <= whole ? whole : sum
  return {
    amount_refunded: formatMinor(capped, currency_code),
    amount_refunded_hard: formatMinor(hardSum, currency_code),
    wasWhole: hardBefore === whole,
    isWhole: hardSum === whole,
  }
}

export async function writeSums(
  query: Query,
  { organization_id, order_id }: Pick<Summed, 'organization_id' | 'order_id'>,
  { amount_refunded, amount_refunded_hard }: Sums,
): Promise<void> {
  await query(WRITE, [organization_id, order_id, amount_refunded, amount_refunded_hard])
}

const WRITE: Statement = {
  name: 'write sums of refunds',
  text: `
    update orders set amount_refunded = $3, amount_refunded_hard = $4 where organization_id = $1 and order_id = $2`,
}
