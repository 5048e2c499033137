// Verifies what arrives at a webhook endpoint, and returns the event with its type.
import { Webhook } from 'standardwebhooks'
import type { webhooks } from './schema.ts'

/** What each webhook sends. */
type Events = {
  [Name in keyof webhooks]: webhooks[Name] extends {
    post: { requestBody: { content: { 'application/json': infer Event } } }
  }
    ? Event
    : never
}[keyof webhooks]

/** An event of any kind; `type` tells which, and with it what `data` is. */
export type WebhookEvent = Events

/**
 * The event in a request's raw body. Throws when the signature is wrong, missing or older than five minutes. `secret` is
 * the project's `webhook_secret`, which begins with `whsec_`.
 */
export function unwrap(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
): WebhookEvent {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  return new Webhook(secret).verify(text, plain(headers)) as WebhookEvent
}

const NAMES = ['webhook-id', 'webhook-timestamp', 'webhook-signature']

function plain(headers: Headers | Record<string, string | string[] | undefined>): Record<string, string> {
  const value = (name: string) => (headers instanceof Headers ? headers.get(name) : headers[name])
  return Object.fromEntries(NAMES.map((name) => [name, String(value(name) ?? '')]))
}
