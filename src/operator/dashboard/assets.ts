// The stylesheet and the scripts of the dashboard, from this package and from node_modules.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'

const own = (name: string) => new URL(`assets/${name}`, import.meta.url).href

// In this order: later ones override earlier ones.
const STYLES = ['base', 'frame', 'period', 'tables', 'ids', 'figures', 'lists', 'forms', 'media', 'print']

const ASSETS: Record<string, { from: () => string[]; type: string }> = {
  'dashboard.css': { from: () => STYLES.map((name) => own(`styles/${name}.css`)), type: 'text/css' },
  'dashboard.js': {
    from: () => ['charts.js', 'places.js', 'kept-form.js', 'dashboard.js'].map(own),
    type: 'text/javascript',
  },
  'htmx.js': { from: () => [import.meta.resolve('htmx.org/dist/htmx.min.js')], type: 'text/javascript' },
  'chart.js': {
    from: () => [new URL('chart.umd.min.js', import.meta.resolve('chart.js')).href],
    type: 'text/javascript',
  },
}

/** Serves `/assets/…`, each read at its first request. They hold no data, so they may be cached. */
export function serveDashboardAssets(scope: FastifyInstance): void {
  for (const [name, { from, type }] of Object.entries(ASSETS)) {
    let content: Promise<Buffer> | undefined
    scope.get(`/assets/${name}`, async (_request, reply) => {
      content ??= readAll(from())
      return reply
        .headers({
          'content-type': `${type}; charset=utf-8`,
          'cache-control': 'max-age=300',
          'x-content-type-options': 'nosniff',
        })
        .send(await content)
    })
  }
}

/** The files as one, so that the browser needs one request. */
async function readAll(addresses: string[]): Promise<Buffer> {
  return Buffer.concat(await Promise.all(addresses.map((one) => readFile(fileURLToPath(one)))))
}
