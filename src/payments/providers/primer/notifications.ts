// Primer's webhooks: verifies their signatures and finds the object that each is about.
import { createHash, createHmac } from 'node:crypto'
import { readAnyCurrency } from '../../../lib/money.ts'
import { equalSecrets } from '../../../lib/secrets.ts'
import { shorten } from '../../../lib/text.ts'
import type { Dispute } from '../movements.ts'
import type { Hint, Notification, Signed } from '../notification.ts'
import { fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { isConvertible } from './money.ts'
import { isObject, ownIds, readTime } from './objects.ts'

/** The second one is sent for 24 hours after the signing secret was rotated. */
export const SIGNATURE_HEADERS = ['x-signature-primary', 'x-signature-secondary'] as const

/**
 * Verifies that one of the headers is the base64 of the HMAC-SHA256 of the body for one of the secrets. The body of a webhook about a
 * payment contains the time of the signature. Those about disputes and workflows have none in Primer's reference, nor has the
 * message of the dashboard's test: repeating one changes nothing.
 */
export function verifyPrimerSignature(
  headers: readonly string[],
  body: Buffer,
  secrets: readonly string[],
): Signed | undefined {
  const given = headers.map((header) => Buffer.from(header, 'base64'))
  const isSigned = secrets.some((secret) => {
    const expected = createHmac('sha256', secret).update(body).digest()
    return given.some((signature) => signature.length === expected.length && equalSecrets(signature, expected))
  })
  if (!isSigned) return undefined
  const { signedAt, eventType } = parse(body)
  if ((signedAt ?? null) === null) return textOf(eventType)?.startsWith('PAYMENT.') ? undefined : { atS: null }
  return Number.isFinite(Number(signedAt)) ? { atS: Number(signedAt) } : undefined
}

function parse(body: Buffer): Fields {
  try {
    return fieldsOf(JSON.parse(body.toString('utf8')))
  } catch {
    return {}
  }
}

/** Parses a webhook; undefined if the value is none. */
export function readPrimerEvent(value: unknown): Notification | undefined {
  if (!isObject(value)) return undefined
  const event = essenceOf(fieldsOf(value))
  const kind = textOf(event['eventType'])
  // The dashboard sends it to test the address.
  if (kind === null && textOf(fieldsOf(value)['message']) === null && event['message'] === undefined) return undefined
  // Webhooks have no id. A repeated delivery is equal in these parts, or is only looked up once more.
  const id = createHash('sha256').update(JSON.stringify(event)).digest('base64url')
  const at = readTime(event['date']) ?? readTime(event['receivedAt'])
  const createdS = Number(event['signedAt']) || (at === null ? 0 : Math.floor(Date.parse(at) / 1000))
  return { id, kind: (kind ?? 'TEST').slice(0, 100), createdS, hint: hintOf(kind, event), event }
}

const NAMED = [
  ...['eventType', 'date', 'signedAt', 'version', 'type', 'status', 'paymentId', 'orderId', 'processorDisputeId'],
  ...['receivedAt', 'reason', 'reasonCode', 'amount', 'currency', 'currencyCode'],
]

/** What is needed of a webhook to look up its objects, without data of people. Repeating it changes nothing. */
function essenceOf(event: Fields): Fields {
  const { payment, message, eventType } = event
  const fields = fieldsOf(payment)
  const metadata = { tundish_order: ownIds(fields).reference }
  return {
    ...scalarsOf(event, NAMED),
    ...(isObject(payment) && { payment: { ...scalarsOf(fields, NAMED_OF_PAYMENT), metadata } }),
    ...(textOf(eventType) === null && message !== undefined && { message: true }),
  }
}

const NAMED_OF_PAYMENT = ['id', 'dateUpdated', 'status']

/** Those of the fields that are texts or numbers. */
function scalarsOf(fields: Fields, names: string[]): Fields {
  const found = names.map((name) => [name, fields[name]] as const)
  return Object.fromEntries(found.filter(([, value]) => typeof value === 'string' || typeof value === 'number'))
}

export const essenceOfPrimerEvent = ({ event }: Notification): object => event

export const whyNoPrimerEvent = () => 'The body must be a webhook of Primer with an eventType.'

function hintOf(kind: string | null, event: Fields): Hint {
  const payment = fieldsOf(event['payment'])
  const handle = textOf(payment['id'])
  if (handle !== null && ABOUT_CHARGE.has(kind)) return { about: 'charge', orderId: ownIds(payment).reference, handle }
  if (handle !== null && ABOUT_REFUND.has(kind)) return { about: 'refund', chargeTransactionId: handle }
  const chargeTransactionId = textOf(event['paymentId'])
  if (kind !== 'DISPUTE.STATUS' || chargeTransactionId === null || event['type'] === 'RETRIEVAL') return NOTHING
  const dispute = readDispute(event, chargeTransactionId)
  if (dispute) return { about: 'dispute', chargeTransactionId, dispute }
  const told = [
    event['processorDisputeId'],
    event['status'],
    event['amount'],
    event['currency'] ?? event['currencyCode'],
  ]
  const whyUnread = `its id, status, amount and currency are ${shorten(JSON.stringify(told), 200)}`
  return { about: 'dispute', chargeTransactionId, whyUnread }
}

const NOTHING: Hint = { about: 'nothing' }
// A failed operation leaves the status of its payment as it is, so that no other webhook tells it.
const ABOUT_CHARGE = new Set<string | null>(['PAYMENT.STATUS', 'PAYMENT.CAPTURE.FAILED', 'PAYMENT.CANCELLATION.FAILED'])
const ABOUT_REFUND = new Set<string | null>(['PAYMENT.REFUND', 'PAYMENT.REFUND.FAILED'])

/**
 * Primer's API cannot be asked for disputes, so the signed webhook itself tells them. When funds are withdrawn it does not tell:
 * they count as withdrawn once the dispute is lost, and not while it is open. An inquiry (`RETRIEVAL`) moves no money.
 */
function readDispute(event: Fields, chargeTransactionId: string): Dispute | undefined {
  const disputeId = textOf(event['processorDisputeId'])
  const status = STATES[String(event['status'])]
  const amount = event['amount']
  const currencyCode = readAnyCurrency(String(event['currency'] ?? event['currencyCode']))
  if (disputeId === null || status === undefined) return undefined
  if (!Number.isSafeInteger(amount) || (amount as number) <= 0) return undefined
  if (currencyCode === undefined || !isConvertible(currencyCode)) return undefined
  const amountMinor = BigInt(amount as number)
  return {
    disputeId,
    chargeTransactionId,
    status,
    fundsWithdrawn: status === 'lost',
    reinstatedMinor: status === 'won' ? amountMinor : 0n,
    amountMinor,
    currencyCode,
    reason: textOf(event['reasonCode']) ?? textOf(event['reason']),
    at: readTime(event['receivedAt']) ?? readTime(event['date']) ?? new Date().toISOString(),
  }
}

const STATES: Readonly<Record<string, Dispute['status']>> = {
  OPEN: 'open',
  CHALLENGED: 'open',
  ACCEPTED: 'lost',
  EXPIRED: 'lost',
  LOST: 'lost',
  WON: 'won',
  CANCELLED: 'won',
}
