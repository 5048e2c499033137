// Cookies of the dashboard: scripts cannot read them, and requests from other sites do not carry them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { forwardedValues } from '../../lib/http/client-address.ts'

export function cookieOf({ headers }: FastifyRequest, name: string): string | undefined {
  for (const part of (headers.cookie ?? '').split(';')) {
    const [key, value] = part.trim().split('=', 2)
    if (key === name && value && /^[A-Za-z0-9_-]{1,4000}$/.test(value)) return value
  }
  return undefined
}

export function setCookie(
  reply: FastifyReply,
  name: string,
  value: string,
  { seconds, secure, sameSite = 'Strict' }: { seconds: number; secure: boolean; sameSite?: 'Strict' | 'Lax' },
): void {
  reply.header(
    'set-cookie',
    `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure ? '; Secure' : ''}`,
  )
}

export function dropCookie(reply: FastifyReply, name: string): void {
  reply.header('set-cookie', `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`)
}

/**
 * Whether the browser used TLS, which a proxy in front terminates. Of several proxies each may add a value; the first is the browser's.
 * One of the two headers suffices, because a proxy may pass on the other one unread. A forged header only makes the cookie stricter.
 */
export function isSecure({ headers }: FastifyRequest): boolean {
  const values = [headers['x-forwarded-proto'] ?? ''].flat().join().split(',')
  const named = forwardedValues(headers.forwarded ?? '', 'proto')
  return [values[0]!, named[0]!].some((proto) => proto.trim().toLowerCase() === 'https')
}
