// The payment whose saved card a charge uses, in SQL: `of` is a row with `organization_id` and `external_id`. And all cards of a customer.
import { paidAt } from '../../../core/records/payment-time.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { Card } from '../../providers/provider.ts'
import type { Order } from './row.ts'

/** The customer's successful payments, as `r`. */
export const paymentsOf = (of: string) => `from report_transactions r
  where r.organization_id = ${of}.organization_id and r.external_id = ${of}.external_id
    and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`

/**
 * The latest of them, by the time of the payment, that saved a card which is not detached. After the cards of the `customer` were
 * erased, only a later payment counts, with a card and a customer at the provider that no erasure knew. A row that is stored after the card was detached still names it.
 */
export const savedCardOf = (of: string, customer: string) => `${paymentsOf(of)} and r.payment_method_token is not null
    and (${customer}.cards_erased_at is null or ${paidAt('r')} > ${customer}.cards_erased_at and not exists (
      select from provider_erasures e where e.organization_id = r.organization_id and e.psp = r.psp
        and e.psp_merchant_id = r.psp_merchant_id and e.target in (r.psp_customer_id, r.payment_method_token)))
    and not exists (
      select from detached_cards d where d.organization_id = r.organization_id and d.token = r.payment_method_token
        and d.psp = r.psp and d.psp_merchant_id = r.psp_merchant_id)
    order by ${paidAt('r')} desc, r.trx_created_at desc limit 1`

type CardRow = { token: string; customer: string | null }

/**
 * The order's card, and the other cards with which its customer has paid through the merchant account. A provider may have several
 * customers for one of ours, for example one for each checkout.
 */
export async function cardsOf(query: Query, order: Order): Promise<Card[]> {
  const { organization_id, external_id, psp, psp_merchant_id, payment_method_token, provider_customer } = order
  const rows = await query<CardRow>(CARDS, [organization_id, external_id, psp, psp_merchant_id, payment_method_token])
  const others = rows.map(({ token, customer }) => ({ token, providerCustomer: customer }))
  return [{ token: payment_method_token, providerCustomer: provider_customer }, ...others]
}

// The latest ten, because each may take two calls to the provider.
const CARDS: Statement = {
  name: 'list cards of customer',
  text: `select r.payment_method_token as token, max(r.psp_customer_id) as customer from report_transactions r
         where r.organization_id = $1 and r.external_id = $2 and r.psp = $3 and r.psp_merchant_id = $4
           and r.psp_transaction_type = 'sale' and r.payment_method_token <> $5
         group by 1 order by max(${paidAt('r')}) desc limit 10`,
}
