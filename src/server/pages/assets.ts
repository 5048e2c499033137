// The stylesheet and the icon of the pages.
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'

/** Serves `/docs/pages.css`, `/favicon.svg`, and `/favicon.ico`, which browsers request by default. */
export function serveAssets(listener: FastifyInstance): void {
  const headers = { 'cache-control': 'max-age=3600', 'x-content-type-options': 'nosniff' }
  const hidden = { schema: { hide: true } as object }
  listener.get('/docs/pages.css', hidden, async (_request, reply) =>
    reply.headers(headers).type('text/css; charset=utf-8').send(STYLES),
  )
  listener.get('/favicon.svg', hidden, async (_request, reply) =>
    reply.headers(headers).type('image/svg+xml').send(ICON),
  )
  listener.get('/favicon.ico', hidden, async (_request, reply) => reply.redirect('favicon.svg', 308))
}

const STYLES = ['text', 'layout']
  .map((name) => readFileSync(new URL(`styles/${name}.css`, import.meta.url), 'utf8'))
  .join('\n')

// A tundish: the vessel from which molten metal flows into the mold.
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#1d3557"/>
<path d="M6 8h20l-4 10h-4v3h-4v-3h-4z" fill="#f1a661"/>
<path d="M14.5 23h3v4h-3z" fill="#f1a661"/>
</svg>
`
