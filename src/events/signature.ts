// Signs deliveries as the Standard Webhooks specification says.
import { createHmac } from 'node:crypto'

export interface Signed {
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}

/**
 * The headers that prove who sent `body`. There is one signature for each key that lives, so that a receiver may change
 * from one to the next at any moment of an overlap. The whole text of a key, in UTF-8, is the key of the HMAC.
 */
export function sign(id: string, timestampSeconds: number, body: string, keys: string[]): Signed {
  const signed = `${id}.${timestampSeconds}.${body}`
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  }
}

/** All headers of a delivery of `body`. */
export const deliveryHeaders = (id: string, timestampSeconds: number, body: string, keys: string[]) => ({
  'content-type': 'application/json; charset=utf-8',
  'user-agent': 'Tundish-Webhooks/1',
  ...sign(id, timestampSeconds, body, keys),
})
