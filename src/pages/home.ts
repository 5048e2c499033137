// The page at `/` of the public listener: what this server is, and where to go from here.
import type { FastifyInstance } from 'fastify'
import { tundishVersion } from '../lib/version.ts'
import { serveAssets } from './assets.ts'
import { serveGuides } from './guides.ts'
import { escapeHtml, sendPage } from './page.ts'

/** Serves the home page, and with it the guides, the stylesheet and the icon. */
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
  'The backend of web funnels that sell subscriptions: a data API at /public/v1 and a billing API at /ORGANIZATION/v1. Both are for servers only; every call needs a secret key.'

/** Addresses relative to `/`, and what is there. */
const LINKS: Record<string, string> = {
  docs: 'The reference: every operation with its parameters, answers and errors.',
  'openapi.json': 'The same as an OpenAPI description, for programs.',
  'docs/guides': 'The guides: first calls, syncs, charges, webhooks, running it.',
  'health/live': 'Whether the process is up.',
  'health/ready': 'Whether it can serve: the database answers, and its schema is current.',
}
