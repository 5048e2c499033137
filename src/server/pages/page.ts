// Sends the HTML pages of the public listener: head, security headers, stylesheet, and no script.
import type { FastifyReply } from 'fastify'
import { pageHeaders } from '../../lib/http/page-headers.ts'

/**
 * `base` is the relative path from the page to the root of the listener, `./` or `../…`, so that a proxy can add a path
 * prefix.
 */
export interface Page {
  title: string
  base: string
  body: string
}

const HEADERS = {
  ...pageHeaders({ 'style-src': "'self'", 'img-src': "'self'" }),
  'referrer-policy': 'no-referrer',
}

export function sendPage(reply: FastifyReply, { title, base, body }: Page): FastifyReply {
  return reply
    .headers(HEADERS)
    .type('text/html; charset=utf-8')
    .send(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${base}favicon.svg">
<link rel="stylesheet" href="${base}docs/pages.css">
</head>
<body>
${body}
</body>
</html>
`)
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string) => text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
