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
 * The event in a request's raw body. Throws a `WebhookVerificationError` when the signature is wrong, missing or older than five
 * minutes. `secret` is the project's `webhook_secret`, which begins with `whsec_`.
 */
export function unwrap(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
): WebhookEvent {
  if (typeof body !== 'string' && !ArrayBuffer.isView(body) && !((body as unknown) instanceof ArrayBuffer))
    throw new TypeError('Give unwrap the raw body, as text or bytes, and not what a JSON parser made of it.')
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  return openWebhook(secret).verify(text, plain(headers)) as WebhookEvent
}

/** A malformed secret is an error of the program: a `WebhookVerificationError` would say that the request is forged. */
function openWebhook(secret: string): Webhook {
  try {
    // Without the line break that it may have in a file.
    return new Webhook(secret.trim())
  } catch (cause) {
    throw new TypeError('Give unwrap the whole webhook secret, as it was printed: whsec_….', { cause })
  }
}

/** Names in any case: `verify` knows them all. */
function plain(headers: Headers | Record<string, string | string[] | undefined>): Record<string, string> {
  const all = Symbol.iterator in headers ? [...headers] : Object.entries(headers)
  return Object.fromEntries(all.map(([name, value]) => [name, String(value ?? '')]))
}
