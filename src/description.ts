// The description of the public listener, made from the very declarations that serve it, and the page that shows it.
import swagger from '@fastify/swagger'
import Fastify, { type FastifyInstance, type FastifyRequest, type RouteOptions } from 'fastify'
import { ApiError } from './lib/errors.ts'
import { sendJson } from './lib/wire.ts'

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
    return sendJson(reply, text)
  })
  let page: Promise<FastifyInstance> | undefined
  const serve: RouteOptions['handler'] = async (request: FastifyRequest, reply) => {
    page ??= openPage(() => listener.swagger())
    const pages = await page
    const answer = await pages.inject({ method: 'GET', url: request.url })
    if (answer.statusCode === 404) throw new ApiError(404, 'There is nothing at this path.')
    return reply.code(answer.statusCode).headers(pick(answer.headers)).send(answer.rawPayload)
  }
  listener.get('/docs', HIDDEN, serve)
  listener.get('/docs/*', HIDDEN, serve)
}

const HIDDEN = { schema: { hide: true } as object }

// The page loads its own script and nothing else, so that it works without internet and cannot leak a key.
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The reference page as an application of its own: its large script is loaded when somebody first asks for the page. */
async function openPage(description: () => object): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const pages = Fastify()
  await pages.register(reference, {
    routePrefix: '/docs',
    configuration: {
      content: description,
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      agent: { disabled: true },
      mcp: { disabled: true },
      defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
    } as never,
  })
  await pages.ready()
  return pages
}

function pick(headers: Record<string, unknown>): Record<string, string> {
  const kept = ['content-type', 'cache-control', 'location', 'etag'].filter((name) => headers[name] !== undefined)
  return {
    ...Object.fromEntries(kept.map((name) => [name, String(headers[name])])),
    'content-security-policy': PAGE_POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
  }
}
