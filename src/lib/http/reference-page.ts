// Serves the OpenAPI description of a listener as JSON, and the reference page that shows it.
import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import { Type } from '../shape/schema.ts'
import { pageHeaders } from './page-headers.ts'
import { sendJson } from './send-json.ts'

/** Serves `/openapi.json` and the reference page at `/docs`, which loads nothing from other hosts. */
export function describePages(listener: FastifyInstance): void {
  let text: string | undefined
  listener.get('/openapi.json', WITHOUT_PARAMETERS, async (_request, reply) => {
    text ??= JSON.stringify(listener.swagger())
    return sendJson(reply.header('x-content-type-options', 'nosniff'), text)
  })
  listener.get('/docs', WITHOUT_PARAMETERS, async (_request, reply) =>
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(PAGE),
  )
  // URLs on the page are relative to /docs, so that it also works under a proxy's path.
  listener.get('/docs/', HIDDEN, async (_request, reply) => reply.redirect('../docs', 308))
  let script: Promise<Buffer> | undefined
  listener.get('/docs/reference.js', HIDDEN, async (_request, reply) => {
    script ??= loadScript()
    return reply.headers(SCRIPT_HEADERS).send(await script)
  })
}

const HIDDEN = { schema: { hide: true } as object }
const WITHOUT_PARAMETERS = { schema: { hide: true, querystring: Type.Object({}) } as object }

// The page sends no requests: a secret key must not be typed into a browser.
const REFERENCE = {
  url: 'openapi.json',
  telemetry: false,
  withDefaultFonts: false,
  hideTestRequestButton: true,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultOpenAllTags: true,
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  // Otherwise codes and statuses in tables are broken in the middle of a word.
  customCss: '.markdown :is(td, th, td code) { overflow-wrap: normal !important; word-break: normal !important }',
}

const START = `Scalar.createApiReference('#reference', ${JSON.stringify(REFERENCE)})`

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tundish reference</title>
<link rel="icon" href="favicon.svg">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript; <a href="openapi.json">openapi.json</a> is the same without.</noscript>
<script src="docs/reference.js"></script>
<script>${START}</script>
</body>
</html>
`

// Only its own script and description: the page works offline and cannot send anything to other hosts.
const PAGE_HEADERS = {
  ...pageHeaders({
    'script-src': `'self' 'sha256-${createHash('sha256').update(START).digest('base64')}'`,
    'style-src': "'self' 'unsafe-inline'",
    'img-src': "'self' data:",
    'font-src': "'self' data:",
    'connect-src': "'self'",
  }),
  'referrer-policy': 'no-referrer',
}

const SCRIPT_HEADERS = {
  'content-type': 'text/javascript; charset=utf-8',
  'cache-control': 'max-age=3600',
  'x-content-type-options': 'nosniff',
}

/** The reference page's script: several megabytes, so it is loaded at the first request for the page. */
async function loadScript(): Promise<Buffer> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const pages = Fastify()
  await pages.register(reference, { routePrefix: '/', configuration: { url: 'openapi.json' } })
  return (await pages.inject('/js/scalar.js')).rawPayload
}
