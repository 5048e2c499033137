// The demo's payments: rows of the transaction report, and why some cards were declined.
import { minorUnits } from '../../lib/money.ts'
import type { Random } from '../../lib/seeded-random.ts'
import { inCents } from './catalogue.ts'
import { iso, type Line } from './people.ts'
import { uuid } from './random.ts'

/** The merchant accounts by their region. */
export const ACCOUNTS = { eu: 'moonrise-eu', us: 'moonrise-us' }
const AMERICAN = ['USD', 'BRL']

export const DECLINES = {
  insufficient_funds: 52,
  do_not_honor: 24,
  expired_card: 11,
  try_again_later: 8,
  lost_card: 5,
} as const
const SENTENCES: Record<keyof typeof DECLINES, string> = {
  insufficient_funds: 'The card has insufficient funds.',
  do_not_honor: 'The bank declined the payment.',
  expired_card: 'The card has expired.',
  try_again_later: 'The bank could not be reached.',
  lost_card: 'The bank declined the payment.',
}
const HARD: readonly string[] = ['expired_card', 'lost_card']

export function declineOf(reason: keyof typeof DECLINES) {
  return {
    status: 'failed',
    psp_status: 'declined',
    psp_reason_code: reason,
    psp_reason_message: SENTENCES[reason],
    psp_reason_type: 'issuer_decline',
    psp_reason_decline_type: HARD.includes(reason) ? 'hard' : 'soft',
  }
}

export const DECLINED = declineOf('insufficient_funds')

interface Payment {
  external_id: string
  ms: number
  price: number
  currency: string
  token: string | null
}

/** A payment of the report; amounts there are in major units. */
export function payment(random: Random, { external_id, ms, price, currency, token }: Payment, more: object = {}): Line {
  const card = token === 'pm_card_mastercard' ? ['mastercard', '555555', '4444'] : ['visa', '424242', '4242']
  const stamp = iso(ms)
  const region = AMERICAN.includes(currency) ? 'us' : 'eu'
  const data = {
    external_id,
    order_id: uuid(random, ms),
    trx_id: uuid(random, ms),
    trx_created_at: stamp,
    psp_date: stamp,
    amount: price / 10 ** minorUnits(currency)!,
    amount_usd: inCents(price, currency) / 100,
    currency_code: currency,
    status: 'succeeded',
    integration_type: 'server_to_server',
    region,
    psp: 'simulator',
    psp_merchant_id: ACCOUNTS[region],
    psp_transaction_id: `sim_${random.integer(1e9, 9e9)}`,
    psp_transaction_type: 'sale',
    psp_status: 'succeeded',
    is_vaulted: token !== null,
    pm_type: 'card',
    network: card[0],
    pm_data_first6: card[1],
    pm_data_last4: card[2],
    pm_data_expiration_date: '12/2030',
    payment_method_token: token,
    ...more,
  }
  return { record: 'payment', data }
}
