// The guides in `docs/` as pages at `/docs/guides/…`.
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../lib/errors.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'
import { escapeHtml, sendPage } from './page.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const HIDDEN = { schema: { hide: true } as object }
// Listed first, in this order, which is that of the README; the others follow by name.
const FIRST = [
  'readme',
  'data-api',
  'errors',
  'sync',
  'charging',
  'stripe',
  'webhooks',
  'import',
  'erasure',
  'finance',
  'figures',
  'dashboard',
  'operators',
  'operating',
  'production',
  'configuration',
  'commands',
  'metrics',
  'backup',
  'growing',
  'high-availability',
]
const OUTSIDE_DOCS = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']

/** Serves the list of guides at `/docs/guides`, each guide, rendered at its first request, and their pictures. */
export function serveGuides(listener: FastifyInstance): void {
  const guides = findGuides()
  const pictures = new Set(filesOf('.png'))
  const rendered = new Map<string, Promise<Rendered>>()
  const render = (name: string) => {
    const page = rendered.get(name) ?? renderGuide(guides, name)
    rendered.set(name, page)
    return page
  }
  listener.get('/docs/guides', HIDDEN, async (_request, reply) => {
    const titles = await Promise.all([...guides.keys()].map(async (name) => ({ name, ...(await render(name)) })))
    const decisions = titles.filter(({ name }) => name.startsWith('decisions/'))
    const others = titles.filter((guide) => !decisions.includes(guide))
    const body = `<main><h1>Guides</h1>${listOf(others)}<h2 id="decisions">Decisions</h2>${listOf(decisions)}</main>`
    return sendPage(reply, { title: 'Guides · Tundish', base: '../', body: menu('../') + body })
  })
  listener.get('/docs/guides/', HIDDEN, async (_request, reply) => reply.redirect('../guides', 308))
  listener.get('/docs/guides/*', HIDDEN, async (request, reply) => {
    const name = (request.params as { '*': string })['*']
    if (pictures.has(name)) return reply.headers(PICTURE_HEADERS).send(await readFile(`${ROOT}docs/${name}`))
    if (!guides.has(name))
      throw new ApiError(404, 'path_not_found', 'There is no guide of this name. /docs/guides lists all guides.')
    const { title, html } = await render(name)
    const base = `../../${'../'.repeat(name.split('/').length - 1)}`
    return sendPage(reply, { title: `${title} · Tundish`, base, body: `${menu(base)}<main>${html}</main>` })
  })
}

const PICTURE_HEADERS = {
  'content-type': 'image/png',
  'cache-control': 'max-age=3600',
  'x-content-type-options': 'nosniff',
}

const filesOf = (suffix: string) =>
  readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(suffix))

/** The files of the guides by their path after `/docs/guides/`. */
function findGuides(): Map<string, string> {
  const docs = filesOf('.md').map((name) => [name.slice(0, -'.md'.length), `docs/${name}`] as const)
  const others = OUTSIDE_DOCS.map((file) => [file.slice(0, -'.md'.length).toLowerCase(), file] as const)
  const place = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length)
  return new Map([...docs, ...others].sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1)))
}

async function renderGuide(guides: Map<string, string>, name: string): Promise<Rendered> {
  const path = guides.get(name)!
  const names = new Map([...guides].map(([other, file]) => [file, other]))
  return renderMarkdown(path, await readFile(`${ROOT}${path}`, 'utf8'), (file) => {
    if (file === 'docs/decisions/') return `${'../'.repeat(name.split('/').length)}guides#decisions`
    const other = names.get(file) ?? (file.endsWith('.png') ? file.replace(/^docs\//, '') : undefined)
    return other === undefined ? undefined : posix.relative(posix.dirname(`/${name}`), `/${other}`)
  })
}

const menu = (base: string) =>
  `<nav><a href="${base}">Tundish</a><a href="${base}docs">Reference</a><a href="${base}docs/guides">Guides</a></nav>\n`

const listOf = (guides: { name: string; title: string }[]) =>
  `<ul>${guides.map(({ name, title }) => `<li><a href="guides/${name}">${escapeHtml(title)}</a></li>`).join('')}</ul>`
