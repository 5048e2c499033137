// Sends documents with the headers that every one of them has.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookieOf } from './cookies.ts'
import type { Html } from './html.ts'
import { document } from './shell.ts'

export const THEME_COOKIE = 'tundish_theme'

/** Nothing but what this listener itself serves, no inline script or style, no frame; kept by no cache. */
export const DOCUMENT_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Not "no-referrer", under which a form's Origin would be "null".
  'referrer-policy': 'same-origin',
}

export function sendDocument(request: FastifyRequest, reply: FastifyReply, title: string, body: Html): FastifyReply {
  const theme = cookieOf(request, THEME_COOKIE)
  return reply
    .headers(DOCUMENT_HEADERS)
    .type('text/html; charset=utf-8')
    .send(document(title, body, theme === 'light' || theme === 'dark' ? theme : undefined))
}

/** Where a link or redirect may lead: a path of this listener and nothing else. */
export const ownPath = (path: string | null) => (path && /^\/(?![/\\])[\x21-\x7e]*$/.test(path) ? path : '/')
