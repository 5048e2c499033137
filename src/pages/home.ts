// The page at `/` of a listener: what this server is, and where to go from here.
import type { FastifyInstance } from 'fastify'
import { tundishVersion } from '../lib/version.ts'
import { serveAssets } from './assets.ts'
import { serveGuides } from './guides.ts'
import { escapeHtml, sendPage } from './page.ts'

interface Home {
  title: string
  about: string
  /** Addresses relative to `/`, and what is there. */
  links: Record<string, string>
}

/** Serves the home page, and with it the guides, the stylesheet and the icon. */
export function serveHome(listener: FastifyInstance, { title, about, links }: Home): void {
  serveAssets(listener)
  serveGuides(listener)
  const rows = Object.entries(links).map(
    ([address, text]) => `<dt><a href="${address}">/${address}</a></dt><dd>${escapeHtml(text)}</dd>`,
  )
  const body = `<main>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(about)}</p>
<dl>
${rows.join('\n')}
</dl>
<p class="quiet">Tundish ${tundishVersion()}</p>
</main>`
  listener.get('/', { schema: { hide: true } as object }, async (_request, reply) =>
    sendPage(reply, { title, base: './', body }),
  )
}

export const PUBLIC_HOME: Home = {
  title: 'Tundish',
  about:
    'The backend of web funnels that sell subscriptions: a data API at /public/v1 and a billing API at /ORGANIZATION/v1. Both are for servers only; every call needs a secret key.',
  links: {
    docs: 'The reference: every operation with its parameters, answers and errors.',
    'openapi.json': 'The same as an OpenAPI description, for programs.',
    'docs/guides': 'The guides: first calls, syncs, charges, webhooks, running it.',
    'health/live': 'Whether the process is up.',
    'health/ready': 'Whether it can serve: the database answers, and its schema is current.',
  },
}

export const OPERATOR_HOME: Home = {
  title: 'Tundish, the operator’s side',
  about:
    'For the people who run this installation: the operator’s API at /admin/v1. Every call needs an operator key, made with “tundish operator create”. Keep this listener off the internet.',
  links: {
    docs: 'The reference of the operator’s API.',
    'openapi.json': 'The same as an OpenAPI description, for programs.',
    'docs/guides': 'The guides.',
    'docs/guides/operators': 'The guide to the operator’s API and its commands.',
    metrics: 'Metrics in the text format of Prometheus.',
  },
}
