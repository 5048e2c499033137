// The description of the public listener, made from the very declarations that serve it, and the page that shows it.
import { createHash } from 'node:crypto'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyInstance } from 'fastify'
import { sendJson } from '../lib/http/listener.ts'

const ABOUT = `
Tundish is the backend of web funnels that sell subscriptions. It has two interfaces, both for servers only: a secret key
must never reach a browser, an app or a repository.

* The **data API** (\`/public/v1\`) reads funnels, profiles, sessions, subscriptions, products and transactions, and erases
  the personal data of profiles. Key: the project's, in the header \`Service-Secret\`, whose name is case-sensitive.
* The **billing API** (\`/{org_id}/v1\`) charges any amount to a customer's saved card, refunds, and reports every payment
  transaction. Key: the organization's, in the header \`service-secret-key\`.

Money of the data API is an integer in the currency's minor unit; amounts of the billing API are in major units.
Date-times are written in UTC with six fraction digits. Errors are \`{"message": "…"}\`, a sentence for the caller.
`

/** Collects the declarations of every route registered on `listener` after this. */
export async function describeRoutes(listener: FastifyInstance): Promise<void> {
  await listener.register(swagger, {
    hideUntagged: true,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Tundish',
        version: '1.0.0',
        description: ABOUT.trim(),
        license: { name: 'MIT', identifier: 'MIT' } as never,
      },
      servers: [{ url: '/', description: 'This server.' }],
      tags: TAGS,
      components: {
        securitySchemes: {
          projectKey: {
            type: 'apiKey',
            in: 'header',
            name: 'Service-Secret',
            description: 'The secret key of a project.',
          },
          organizationKey: {
            type: 'apiKey',
            in: 'header',
            name: 'service-secret-key',
            description: 'The secret key of an organization.',
          },
        },
      },
    },
  })
}

const TAGS = [
  { name: 'Funnels', description: 'The funnels of the project.' },
  { name: 'Profiles', description: 'Persons, and the erasure of their data.' },
  { name: 'Sessions', description: 'Visits of a funnel with their form replies.' },
  { name: 'Subscriptions', description: 'What was sold for a time.' },
  { name: 'Products', description: 'What can be sold, with prices.' },
  { name: 'Transactions', description: 'Payments as the data API tells them.' },
  { name: 'Billing', description: 'Charges on a saved card, refunds, what a customer owns, the payment report.' },
  { name: 'Health', description: 'For load balancers and monitors.' },
]

/** Serves `/openapi.json` and the reference page at `/docs`, which needs nothing from another host. */
export function describePages(listener: FastifyInstance): void {
  let text: string | undefined
  listener.get('/openapi.json', HIDDEN, async (_request, reply) => {
    text ??= JSON.stringify(listener.swagger())
    return sendJson(reply.header('x-content-type-options', 'nosniff'), text)
  })
  listener.get('/docs', HIDDEN, async (_request, reply) =>
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(PAGE),
  )
  // Addresses on the page are relative to /docs, so that it works under a proxy's path too.
  listener.get('/docs/', HIDDEN, async (_request, reply) => reply.redirect('../docs', 308))
  let script: Promise<Buffer> | undefined
  listener.get('/docs/reference.js', HIDDEN, async (_request, reply) => {
    script ??= loadScript()
    return reply.headers(SCRIPT_HEADERS).send(await script)
  })
}

const HIDDEN = { schema: { hide: true } as object }

// Requests are not sent from the page: a secret key must not be typed into a browser.
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
}

const START = `Scalar.createApiReference('#reference', ${JSON.stringify(REFERENCE)})`

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tundish reference</title>
<link rel="icon" href="data:,">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript; <a href="openapi.json">openapi.json</a> is the same without.</noscript>
<script src="docs/reference.js"></script>
<script>${START}</script>
</body>
</html>
`

// Its own script and description and nothing else: the page works without internet and can tell nobody anything.
const PAGE_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    `script-src 'self' 'sha256-${createHash('sha256').update(START).digest('base64')}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
}

const SCRIPT_HEADERS = {
  'content-type': 'text/javascript; charset=utf-8',
  'cache-control': 'max-age=3600',
  'x-content-type-options': 'nosniff',
}

/** The reference page's script: megabytes, so it is loaded when somebody first asks for the page. */
async function loadScript(): Promise<Buffer> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const pages = Fastify()
  await pages.register(reference, { routePrefix: '/', configuration: { url: 'openapi.json' } })
  return (await pages.inject('/js/scalar.js')).rawPayload
}
