// Stripe's webhook events: verifies their signature and finds the object that each is about.
import { createHmac } from 'node:crypto'
import { equalSecrets } from '../../../lib/secrets.ts'
import type { Hint, Notification, Signed } from '../notification.ts'
import { fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { balanceEntriesOf } from './fees.ts'
import { idOf } from './objects.ts'

/**
 * Verifies that the header `Stripe-Signature` contains the HMAC-SHA256 of `t.body`, in hex, for one of the secrets. While a secret
 * is rotated, Stripe sends one `v1` for each valid secret.
 */
export function verifyStripeSignature(header: string, body: Buffer, secrets: readonly string[]): Signed | undefined {
  const parts = header.split(',').map((part) => part.trim().split('=', 2) as [string, string?])
  const t = parts.find(([name]) => name === 't')?.[1]
  if (t === undefined || !/^[0-9]{1,12}$/.test(t)) return undefined
  const given = parts.flatMap(([name, value]) => (name === 'v1' && /^[0-9a-f]{64}$/.test(value ?? '') ? [value!] : []))
  const signed = Buffer.concat([Buffer.from(`${t}.`), body])
  const isSigned = secrets.some((secret) => {
    const expected = createHmac('sha256', secret).update(signed).digest()
    return given.some((signature) => equalSecrets(Buffer.from(signature, 'hex'), expected))
  })
  return isSigned ? { atS: Number(t) } : undefined
}

/** Parses an event, as sent or listed by Stripe; undefined if the value is not an event. */
export function readStripeEvent(value: unknown): Notification | undefined {
  const event = fieldsOf(value)
  const { object } = event
  const [id, type] = [textOf(event['id']), textOf(event['type'])]
  if (object !== 'event' || id === null || type === null || id.length > 255) return undefined
  if (!isObject(fieldsOf(event['data'])['object'])) return undefined
  const createdS = Number(event['created']) || 0
  const hint = hintOf(type, event)
  return { id, kind: type.slice(0, 100), createdS, hint, balanceEntries: balanceEntriesOf(event), event }
}

// The fields of an event's object that name objects or are named by our metadata.
const NAMING = [
  'id',
  'object',
  'customer',
  'product',
  'payment_intent',
  'charge',
  'invoice',
  'subscription',
  'released_subscription',
  'balance_transaction',
  'failure_balance_transaction',
]
// Of these it only matters whether they changed.
const CHANGED = ['invoice_settings', 'default_payment_method', 'default_source']

/** What is needed of an event to look up its objects: ids, our metadata, and which fields changed. */
export function essenceOfStripeEvent({ id, kind, createdS, event }: Notification): object {
  const { object, previous_attributes } = fieldsOf(event['data'])
  const { metadata, balance_transactions, parent, ...own } = fieldsOf(object)
  // An invoice names its subscription in its parent.
  const { subscription } = fieldsOf(fieldsOf(parent)['subscription_details'])
  const fields: Fields = { subscription, ...own }
  const named = NAMING.flatMap((name) => (fields[name] === undefined ? [] : [[name, nameIn(fields[name])]]))
  const entries = Array.isArray(balance_transactions) ? { balance_transactions: balance_transactions.map(idOf) } : {}
  const { tundish_order } = fieldsOf(metadata)
  const { customer, ...before } = fieldsOf(previous_attributes)
  const changed = CHANGED.filter((name) => name in before).map((name) => [name, null])
  return {
    ...{ id, object: 'event', type: kind, created: createdS },
    data: {
      object: { ...Object.fromEntries(named), ...entries, metadata: { tundish_order } },
      previous_attributes: {
        ...(customer !== undefined && { customer: nameIn(customer) }),
        ...Object.fromEntries(changed),
      },
    },
  }
}

const nameIn = (value: unknown) => (typeof value === 'string' ? value : idOf(value))

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Why a signed body is refused. */
export function whyNoStripeEvent(value: unknown): string {
  const { object } = fieldsOf(value)
  if (typeof object === 'string' && object.startsWith('v2.'))
    return 'This is a thin event, which does not contain its object: give the endpoint at Stripe events with the payload style "Snapshot".'
  return 'The body must be an event of Stripe with "object": "event", an id, a type, and an object in data.object.'
}

function hintOf(type: string, event: Fields): Hint {
  const object = fieldsOf(fieldsOf(event['data'])['object'])
  const [family] = type.split('.') as [string]
  // It says nothing that is not known, and an immediate status check could cancel a payment whose confirmation is on its way.
  if (type === 'payment_intent.created') return NOTHING
  if (family === 'payment_intent')
    return {
      about: 'charge',
      orderId: textOf(fieldsOf(object['metadata'])['tundish_order']),
      handle: textOf(object['id']),
    }
  const chargeTransactionId = idOf(object['payment_intent'])
  if (type.startsWith('charge.dispute.'))
    return chargeTransactionId ? { about: 'dispute', chargeTransactionId } : NOTHING
  if (family === 'refund' || type === 'charge.refunded' || type.startsWith('charge.refund.'))
    return chargeTransactionId ? { about: 'refund', chargeTransactionId } : NOTHING
  const isCardOfOlderApi = type.startsWith('customer.source.') && object['object'] === 'card'
  if (family === 'payment_method' || isCardOfOlderApi) {
    const token = textOf(object['id'])
    return token ? { about: 'card', token } : NOTHING
  }
  // No event names the cards of a customer who is deleted.
  const customer = type === 'customer.deleted' ? textOf(object['id']) : null
  return customer ? { about: 'card', customer } : NOTHING
}

const NOTHING: Hint = { about: 'nothing' }
