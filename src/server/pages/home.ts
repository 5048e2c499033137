// The home page of the public listener, at `/`: what this server is, with links to the reference and the guides.
import type { FastifyInstance } from 'fastify'
import { tundishVersion } from '../../lib/version.ts'
import { serveAssets } from './assets.ts'
import { serveGuides } from './guides.ts'
import { sendPage } from './page.ts'

/** Serves the home page, the guides, the stylesheet and the icon. */
export function serveHome(listener: FastifyInstance): void {
  serveAssets(listener)
  serveGuides(listener)
  listener.get('/', { schema: { hide: true } as object }, async (_request, reply) =>
    sendPage(reply, { title: 'Tundish', base: './', body: BODY }),
  )
}

const BODY = `<main class="home">
<h1><img src="favicon.svg" alt="">Tundish</h1>
<p class="lead">The backend for web funnels that sell subscriptions: a data API at <code>/public/v1</code> and a billing API at
<code>/ORGANIZATION/v1</code>. Both are for servers only: every call needs a secret key.</p>
<div class="cards">
<a href="docs"><strong>API reference</strong>Every operation with its parameters, responses and errors.</a>
<a href="docs/guides"><strong>Guides</strong>First calls, syncing, charging, webhooks, operation.</a>
</div>
<p class="quiet">The dashboard is at the operator’s listener, which is not public.</p>
<p class="quiet">For programs: <a href="openapi.json">openapi.json</a> is the reference as an OpenAPI description, <a
href="llms.txt">llms.txt</a> lists the guides as Markdown,
<a href="health/live">health/live</a> says whether the process runs, and <a href="health/ready">health/ready</a> whether the
database responds and its schema is up to date.</p>
<p class="quiet">Tundish ${tundishVersion()}</p>
</main>`
