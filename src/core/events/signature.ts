// Signs deliveries according to the Standard Webhooks specification.
import { createHmac } from 'node:crypto'

export interface Signed {
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}

/**
 * The headers that authenticate `body`. There is one signature for each valid key, so that a receiver may switch to the
 * next key at any moment of an overlap. The HMAC key is the whole text of a secret key, in UTF-8.
 */
function sign(id: string, timestampSeconds: number, body: string, keys: string[]): Signed {
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
