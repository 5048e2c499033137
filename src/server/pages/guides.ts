// The guides in `docs/` as pages at `/docs/guides/…`.
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../lib/errors.ts'
import { CONTENTS } from './contents.ts'
import { serveTexts, TEXT_HEADERS } from './for-programs.ts'
import { type Rendered, renderMarkdown, withLinks } from './markdown.ts'
import { escapeHtml, sendPage } from './page.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const HIDDEN = { schema: { hide: true } as object }
const OUTSIDE_DOCS = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']
const DECISIONS = 'decisions/'

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
  const titlesOf = async (names: string[]) =>
    new Map(await Promise.all(names.map(async (name) => [name, (await render(name)).title] as const)))
  serveTexts(listener, titlesOf)
  listener.get('/docs/guides', HIDDEN, async (_request, reply) => {
    const titles = await titlesOf([...guides.keys()])
    return sendPage(reply, { title: 'Guides · Tundish', base: '../', body: listPage(titles) })
  })
  listener.get('/docs/guides/', HIDDEN, async (_request, reply) => reply.redirect('../guides', 308))
  listener.get('/docs/guides/*', HIDDEN, async (request, reply) => {
    const name = (request.params as { '*': string })['*']
    if (pictures.has(name)) return reply.headers(PICTURE_HEADERS).send(await readFile(`${ROOT}docs/${name}`))
    const source = name.endsWith('.md') ? name.slice(0, -'.md'.length) : undefined
    if (source !== undefined && guides.has(source)) {
      const text = await guideAsMarkdown(guides, source)
      return reply.headers(TEXT_HEADERS).type('text/markdown; charset=utf-8').send(text)
    }
    if (!guides.has(name))
      throw new ApiError(404, 'path_not_found', 'There is no guide of this name. /docs/guides lists all guides.')
    const guide = await render(name)
    const titles = await titlesOf(CONTENTS.flatMap(({ entries }) => entries.map((entry) => entry.name)))
    const base = `../../${'../'.repeat(name.split('/').length - 1)}`
    return sendPage(reply, { title: `${guide.title} · Tundish`, base, body: guidePage(base, name, guide, titles) })
  })
}

const PICTURE_HEADERS = {
  'content-type': 'image/png',
  'cache-control': 'max-age=3600',
  'x-content-type-options': 'nosniff',
}

const filesOf = (suffix: string) =>
  readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(suffix))

/** The files of the guides by their path after `/docs/guides/`, in the order of these paths. */
function findGuides(): Map<string, string> {
  const docs = filesOf('.md').map((name) => [name.slice(0, -'.md'.length), `docs/${name}`] as const)
  const others = OUTSIDE_DOCS.map((file) => [file.slice(0, -'.md'.length).toLowerCase(), file] as const)
  return new Map([...docs, ...others].sort(([a], [b]) => (a < b ? -1 : 1)))
}

async function renderGuide(guides: Map<string, string>, name: string): Promise<Rendered> {
  const path = guides.get(name)!
  return renderMarkdown(path, await readFile(`${ROOT}${path}`, 'utf8'), addresses(guides, name))
}

/** The guide's source, with links to the sources of other guides as this server serves them. */
async function guideAsMarkdown(guides: Map<string, string>, name: string): Promise<string> {
  const path = guides.get(name)!
  return withLinks(path, await readFile(`${ROOT}${path}`, 'utf8'), addresses(guides, name, '.md'))
}

/** Returns the URL of a file of the repository, relative to the guide `name`; undefined for a file that is not served. */
function addresses(guides: Map<string, string>, name: string, suffix = ''): (file: string) => string | undefined {
  const names = new Map([...guides].map(([other, file]) => [file, other + suffix]))
  return (file) => {
    if (file === 'docs/decisions/') return `${'../'.repeat(name.split('/').length)}guides#decisions`
    const other = names.get(file) ?? (file.endsWith('.png') ? file.replace(/^docs\//, '') : undefined)
    return other === undefined ? undefined : posix.relative(posix.dirname(`/${name}`), `/${other}`)
  }
}

/** The page that lists all guides, by their names with their titles. */
function listPage(titles: Map<string, string>): string {
  const link = (name: string) => `<a href="guides/${name}">${escapeHtml(titles.get(name)!)}</a>`
  const groups = CONTENTS.map(({ title, entries }) => {
    const rows = entries.map(({ name, about }) => `<dt>${link(name)}</dt><dd>${escapeHtml(about)}</dd>`)
    return `<h2>${title}</h2><dl>${rows.join('')}</dl>`
  })
  const decisions = [...titles.keys()].filter((name) => name.startsWith(DECISIONS))
  return `${header('../')}<main class="list"><h1>Guides</h1>
${groups.join('\n')}
<h2 id="decisions">Decisions</h2>
<p>Why Tundish is built as it is, with the alternatives that were tried.</p>
<ul>${decisions.map((name) => `<li>${link(name)}</li>`).join('')}</ul></main>`
}

/** A guide between the list of all guides and the list of its headings; a narrow window has the guide only. */
function guidePage(base: string, name: string, { html, headings }: Rendered, titles: Map<string, string>): string {
  const groups = CONTENTS.map(({ title, entries }) => {
    const links = entries.map((entry) => {
      const current = entry.name === name ? ' aria-current="page"' : ''
      return `<li><a href="${base}docs/guides/${entry.name}"${current}>${escapeHtml(titles.get(entry.name)!)}</a></li>`
    })
    return `<p>${title}</p><ul>${links.join('')}</ul>`
  })
  const parts = headings.map(({ anchor, text }) => `<li><a href="#${anchor}">${escapeHtml(text)}</a></li>`)
  const onPage = `<nav class="on-page" aria-label="On this page"><p>On this page</p><ul>${parts.join('')}</ul></nav>`
  return `${header(base)}<div class="columns">
<nav class="guides" aria-label="Guides">${groups.join('')}</nav>
<main>${html}</main>
${parts.length > 1 ? onPage : ''}
</div>`
}

const header = (base: string) => `<header>
<a class="brand" href="${base}"><img src="${base}favicon.svg" alt="">Tundish</a>
<nav aria-label="Main"><a href="${base}docs">Reference</a><a href="${base}docs/guides">Guides</a></nav>
</header>
`
