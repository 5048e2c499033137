// Sends HTML documents with the security headers that all of them have.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { pageHeaders } from '../../lib/http/page-headers.ts'
import { cookieOf } from './cookies.ts'
import type { Html } from './html.ts'
import { document } from './shell.ts'

export const THEME_COOKIE = 'tundish_theme'

/** Only resources of this listener, no inline scripts or styles, no frames. The listener forbids caching. */
export const DOCUMENT_HEADERS = {
  ...pageHeaders({
    'script-src': "'self'",
    'style-src': "'self'",
    'img-src': "'self'",
    'connect-src': "'self'",
    'form-action': "'self'",
  }),
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

/** The path if it is one of this listener, else `/`: keeps redirects and links from leading to other sites. */
export const ownPath = (path: string | null) => (path && /^\/(?![/\\])[\x21-\x7e]*$/.test(path) ? path : '/')
