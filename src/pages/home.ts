// The home page of the public listener, at `/`: what this server is, with links.
import type { FastifyInstance } from 'fastify'
import { tundishVersion } from '../lib/version.ts'
import { serveAssets } from './assets.ts'
import { serveGuides } from './guides.ts'
import { escapeHtml, sendPage } from './page.ts'

/** Serves the home page, the guides, the stylesheet and the icon. */
export function serveHome(listener: FastifyInstance): void {
  serveAssets(listener)
  serveGuides(listener)
  const rows = Object.entries(LINKS).map(
    ([address, text]) => `<dt><a href="${address}">/${address}</a></dt><dd>${escapeHtml(text)}</dd>`,
  )
  const body = `<main>
<h1>Tundish</h1>
<p>${ABOUT}</p>
<dl>
${rows.join('\n')}
</dl>
<p class="quiet">Tundish ${tundishVersion()}</p>
</main>`
  listener.get('/', { schema: { hide: true } as object }, async (_request, reply) =>
    sendPage(reply, { title: 'Tundish', base: './', body }),
  )
}

const ABOUT =
  'The backend for web funnels that sell subscriptions: a data API at /public/v1 and a billing API at /ORGANIZATION/v1. Both are for servers only: every call needs a secret key.'

/** Paths relative to `/`, with what they show. */
const LINKS: Record<string, string> = {
  docs: 'API reference: every operation with its parameters, responses and errors.',
  'openapi.json': 'The same as an OpenAPI description, for programs.',
  'docs/guides': 'Guides: first calls, syncing, charging, webhooks, operation.',
  'health/live': 'Liveness: the process is running.',
  'health/ready': 'Readiness: the database responds, and its schema is up to date.',
}
