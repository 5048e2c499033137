// Which customers at payment providers an erasure has to reach, and by what they are found there.
import { adapters } from '../../payments/providers/adapters.ts'

const PSPS = Object.keys(adapters)
  .map((psp) => `'${psp}'`)
  .join(', ')

/** SQL: whether `id` has the form that the adapter of `psp` gives to its ids of this kind. */
const hasForm = (kind: 'payment' | 'customer', psp: string, id: string) => {
  const forms = Object.entries(adapters).flatMap(([name, adapter]) => {
    const form = adapter!.ids[kind]
    return form === undefined ? [] : [`(${psp} = '${name}' and ${id} ~ '${form}')`]
  })
  return `(${forms.join(' or ')})`
}

// What is known of the billing customer `c` at providers. Payments without the provider's customer are found by their card; those
// without a card by their own id, of which one for each account is enough.
const TARGETS = `
  select r.psp, r.psp_merchant_id, coalesce(r.psp_customer_id, r.payment_method_token) as target,
    case when r.psp_customer_id is null then 'card' else 'customer' end as kind
  from report_transactions r where r.organization_id = c.organization_id and r.external_id = c.external_id
  union select r.psp, r.psp_merchant_id, max(r.psp_transaction_id), 'payment'
  from report_transactions r where r.organization_id = c.organization_id and r.external_id = c.external_id
    and r.psp_customer_id is null and r.payment_method_token is null
    and ${hasForm('payment', 'r.psp', 'r.psp_transaction_id')}
  group by r.psp, r.psp_merchant_id
  union select d.psp, d.psp_merchant_id, coalesce(d.provider_customer, d.payment_method_token),
    case when d.provider_customer is null then 'card' else 'customer' end
  from orders d where d.organization_id = c.organization_id and d.external_id = c.external_id
  union select p.psp, p.psp_merchant_id, p.customer, 'customer'
  from provider_customers p where p.organization_id = c.organization_id and p.external_id = c.external_id`

const INSERT = `
  insert into provider_erasures (organization_id, psp, psp_merchant_id, target, target_kind, project_id, profile_id, how, created_at,
    next_attempt_at)`
const HOW = `case o.erase_at_provider when 'delete' then 'delete' else 'empty' end`

/**
 * Statements of an erasure, with the project as $1 and the profiles as $2. If the organization has switched it on, they
 * stop charges to the cards of the customers and queue the erasure at the providers. Repeating them changes nothing.
 */
export const QUEUE_AT_PROVIDER = [
  `update customers c set cards_erased_at = db_clock() from organizations o
   where c.project_id = $1 and c.profile_id = any($2) and c.cards_erased_at is null
     and o.id = c.organization_id and o.erase_at_provider <> 'off'`,
  `${INSERT}
   select distinct on (c.organization_id, t.psp, t.psp_merchant_id, t.target, c.profile_id)
     c.organization_id, t.psp, t.psp_merchant_id, t.target, t.kind, c.project_id, c.profile_id, ${HOW}, now.at, now.at
   from (select db_clock() as at) now, customers c
   join organizations o on o.id = c.organization_id and o.erase_at_provider <> 'off'
   cross join lateral (${TARGETS}) t
   where c.project_id = $1 and c.profile_id = any($2)
     and t.psp in (${PSPS}) and t.psp_merchant_id is not null and t.target is not null
   -- The same text as the id of the customer and of a card or payment is that of the customer, as the more complete erasure.
   order by c.organization_id, t.psp, t.psp_merchant_id, t.target, c.profile_id, t.kind <> 'customer'
   on conflict do nothing`,
  // Imported customers have the provider's own id as that of the profile, or of the billing customer. A profile of an import may
  // have no billing customer, because that is linked to another profile.
  `${INSERT}
   select distinct on (m.psp, m.psp_merchant_id, t.target, t.profile_id)
     m.organization_id, m.psp, m.psp_merchant_id, t.target, 'customer', p.id, t.profile_id, ${HOW}, now.at, now.at
   from (select db_clock() as at) now, projects p
   join organizations o on o.id = p.organization_id and o.erase_at_provider <> 'off'
   join merchant_accounts m on m.organization_id = o.id and m.psp in (${PSPS})
   cross join lateral (
     select one as profile_id, one as target from unnest($2::text[]) one
     union all select c.profile_id, c.external_id from customers c where c.project_id = p.id and c.profile_id = any($2)) t
   where p.id = $1 and ${hasForm('customer', 'm.psp', 't.target')}
   on conflict do nothing`,
]

/**
 * Repeats erasures at providers that ended, for someone who asks again: the customer there may have got new data. The project is
 * $1, the profiles are $2.
 */
export const REPEAT_AT_PROVIDER = `
  update provider_erasures e set next_attempt_at = db_clock(), done_at = null, why = null, attempts = 0, how = ${HOW}
  from organizations o
  where e.project_id = $1 and e.profile_id = any($2) and e.next_attempt_at is null
    and o.id = e.organization_id and o.erase_at_provider <> 'off'`
