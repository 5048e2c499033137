// What stands before a charge, read at one go: the key's earlier order, the organization's rules, the customer and the card.
import type { Db, Statement } from '../lib/db.ts'
import { gather } from '../lib/gather.ts'
import type { ChargeRequest } from './charge-request.ts'
import { chargeLanes, ORDER_COLUMNS, type Order } from './charges.ts'

/** What stands before a charge: the organization's rules, and of the customer what there is. */
export type Standing = {
  one_off_charge_enabled: 't' | 'f'
  one_off_charge_max_amount: string
  /** Null: there is no such customer. */
  customer_project_id: string | null
  profile_id: string | null
  has_payment: 't' | 'f'
  /** The saved card, that of the latest successful payment that has one; null: none. */
  card_token: string | null
  card_trx_id: string | null
  card_psp: string | null
  card_merchant_id: string | null
  card_region: string | null
  /** JSON; null: nothing is known of the merchant account. */
  currencies: string | null
}

/** A key of a customer. */
type Key = { organizationId: string } & Pick<ChargeRequest, 'externalId' | 'idempotencyKey'>

/** What this key of this customer stands for already, and what stands before a charge. */
export async function readStanding(db: Db, key: Key): Promise<{ seen: Order | undefined; standing: Standing }> {
  const row = await readTogether(db, key)
  if (row.one_off_charge_enabled === null) throw new Error('Bug: the organization of a living key does not exist')
  return { seen: row.order_id === null ? undefined : (row as Order), standing: row as Standing }
}

type Seen = Order | { order_id: null }

/** What is known of the `place`-th key asked for, from 1. */
type Known = { place: string } & Seen & (Standing | { one_off_charge_enabled: null })

const readTogether = gather<Key, Known>({
  group: ({ organizationId }) => organizationId,
  lanes: chargeLanes,
  async work(db, keys) {
    const rows = await db.query<Known>(READ_STANDING, [
      keys.map(({ organizationId }) => organizationId),
      keys.map(({ externalId }) => externalId),
      keys.map(({ idempotencyKey }) => idempotencyKey),
    ])
    const places = new Map(rows.map((row) => [Number(row.place), row]))
    return keys.map((_, n) => places.get(n + 1)!)
  },
})

const PAYMENTS = `from report_transactions r where r.organization_id = a.organization_id and r.external_id = a.external_id
  and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`

const READ_STANDING: Statement = {
  name: 'read standing',
  text: `
    select a.place, g.one_off_charge_enabled, g.one_off_charge_max_amount, c.project_id as customer_project_id, c.profile_id,
      card.trx_id is not null or exists (select ${PAYMENTS}) as has_payment,
      card.payment_method_token as card_token, card.trx_id as card_trx_id, card.psp as card_psp,
      card.psp_merchant_id as card_merchant_id, card.region as card_region, m.currencies, ${ORDER_COLUMNS}
    from unnest($1::text[], $2::text[], $3::text[]) with ordinality as a (organization_id, external_id, idempotency_key, place)
    left join organizations g on g.id = a.organization_id
    left join orders o on o.organization_id = a.organization_id and o.external_id = a.external_id
      and o.idempotency_key = a.idempotency_key
    left join customers c on c.organization_id = a.organization_id and c.external_id = a.external_id
    left join lateral (
      select r.trx_id, r.psp, r.psp_merchant_id, r.region, r.payment_method_token
      ${PAYMENTS} and r.payment_method_token is not null order by r.trx_created_at desc limit 1) card on true
    left join merchant_accounts m on m.organization_id = a.organization_id and m.psp = card.psp
      and m.psp_merchant_id = card.psp_merchant_id`,
}
