// The text of a secret key: how it is made, the hash that the database stores, and the form that webhook libraries take.
import { hash, randomBytes } from 'node:crypto'

/** `secret_` and 32 random bytes in base64url. */
export function makeKey(): string {
  return `secret_${randomBytes(32).toString('base64url')}`
}

/** The hash by which the database looks up a key. A key is 256 random bits, so one round of SHA-256 is enough. */
export function hashKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** The key in the form that published webhook libraries accept. */
export function webhookSecret(key: string): string {
  return `whsec_${Buffer.from(key).toString('base64')}`
}
