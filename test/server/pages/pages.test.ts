// The pages for people: the home page of both listeners, the icon and the guides, without a script. In a browser: server/browser.slow.test.ts.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { CONTENTS } from '../../../src/server/pages/contents.ts'
import { type Json, startTestServer } from '../../support/server.ts'
import { setUpListener } from '../listeners/listener.ts'

const ROOT = join(import.meta.dirname, '../../..')

for (const side of ['public', 'operator'] as const) {
  describe(`the pages of the ${side} listener`, () => {
    const site = setUpListener(side)

    test('the icon is served, also as /favicon.ico', async () => {
      for (const name of ['favicon.svg', 'favicon.ico']) {
        const response = await fetch(`${site.url}/${name}`)
        assert.equal(response.status, 200, name)
        assert.equal(response.headers.get('content-type'), 'image/svg+xml')
      }
    })

    test('every file of docs/ is a guide, and every link of every page works', { timeout: 120_000 }, async () => {
      const seen = new Set<string>()
      const waiting = [side === 'public' ? `${site.url}/` : `${site.url}/docs/guides`]
      for (const address of waiting) {
        const { text } = await page(address)
        for (const [, link] of text.matchAll(/(?:href|src)="([^"]+)"/g)) {
          const target = new URL(link!.replaceAll('&amp;', '&'), address)
          if (target.origin !== site.url || seen.has(target.pathname)) continue
          // Health needs a database, and `/` of the operator's listener is the dashboard.
          if (target.pathname.startsWith('/health') || (side === 'operator' && target.pathname === '/')) continue
          seen.add(target.pathname)
          if (/^\/docs\/guides(?!.*\.png$)/.test(target.pathname)) waiting.push(target.href)
          else if (target.pathname !== '/metrics')
            assert.equal((await fetch(target)).status, 200, `${address}: ${link}`)
        }
      }
      for (const file of readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }))
        if (file.endsWith('.md')) assert.ok(seen.has(`/docs/guides/${file.slice(0, -3)}`), file)
    })

    test('the list of guides has every file of docs/', async () => {
      const { text } = await page(`${site.url}/docs/guides`)
      for (const file of readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }))
        if (file.endsWith('.md')) assert.ok(text.includes(`href="guides/${file.slice(0, -3)}"`), file)
    })

    test('a guide is marked in the list next to it, and lists its own headings', async () => {
      const { text } = await page(`${site.url}/docs/guides/erasure`)
      assert.match(text, /<a href="[^"]*docs\/guides\/erasure" aria-current="page">Erasure<\/a>/)
      const onPage = /aria-label="On this page">(.*?)<\/nav>/s.exec(text)![1]!
      const headings = [...text.matchAll(/<h2 id="([^"]+)"/g)].map(([, anchor]) => anchor)
      assert.ok(headings.length > 1)
      assert.deepEqual(
        [...onPage.matchAll(/href="#([^"]+)"/g)].map(([, anchor]) => anchor),
        headings,
      )
    })

    test('every link to a part of a guide names a heading of it', async () => {
      for (const name of ['operating', 'production', 'configuration', 'readme']) {
        const address = `${site.url}/docs/guides/${name}`
        for (const [, link] of (await page(address)).text.matchAll(/href="([^"]*#[^"]+)"/g)) {
          const target = new URL(link!, address)
          if (target.origin !== site.url) continue
          assert.match((await page(target.href)).text, new RegExp(`id="${target.hash.slice(1)}"`), `${name}: ${link}`)
        }
      }
    })

    test('llms.txt lists every guide of the contents as Markdown, and each of its links is served', async () => {
      const list = await fetch(`${site.url}/llms.txt`)
      assert.equal(list.headers.get('content-type'), 'text/plain; charset=utf-8')
      const links = linksOf(await list.text())
      assert.ok(links.length >= CONTENTS.flatMap(({ entries }) => entries).length + 2)
      const seen = new Set<string>()
      for (const address of links.map((link) => new URL(link, `${site.url}/llms.txt`).href)) {
        const { headers, status, text } = await textOf(address)
        assert.equal(status, 200, address)
        if (!address.endsWith('.md')) continue
        assert.equal(headers.get('content-type'), 'text/markdown; charset=utf-8', address)
        assert.match(text, /^# \S/, address)
        for (const link of linksOf(text.replaceAll(/```.*?```/gs, ''))) {
          const target = new URL(link, address)
          if (target.origin !== site.url || seen.has(target.pathname)) continue
          seen.add(target.pathname)
          assert.equal((await fetch(target)).status, 200, `${address}: ${link}`)
        }
      }
    })

    test('docs.md has a heading for each operation of openapi.json, and every schema', async () => {
      const { text } = await textOf(`${site.url}/docs.md`)
      const description = JSON.parse((await textOf(`${site.url}/openapi.json`)).text) as Json
      for (const [path, methods] of Object.entries(description.paths as Json))
        for (const [method, { tags }] of Object.entries(methods as Json) as [string, { tags: string[] }][])
          assert.ok(text.includes(`### ${method.toUpperCase()} ${path}\n`), `${method} ${path} of ${tags}`)
      for (const name of Object.keys(description.components.schemas)) assert.ok(text.includes(`### ${name}\n`), name)
      assert.doesNotMatch(text, /undefined|\[object/)
    })

    test('404 with a sentence for a guide that does not exist, also outside the folder', async () => {
      for (const name of ['nothing', '..%2F..%2Fpackage.json', 'decisions']) {
        const response = await fetch(`${site.url}/docs/guides/${name}`)
        assert.equal(response.status, 404, name)
        assert.match(((await response.json()) as { message: string }).message, /no guide of this name/)
      }
    })
  })
}

test('200 for / of both listeners, with links to the reference and the guides', async () => {
  const server = await startTestServer()
  try {
    const { text } = await page(`${server.url}/`)
    for (const address of ['docs', 'docs/guides', 'openapi.json', 'health/ready'])
      assert.match(text, new RegExp(`href="${address}"`))
    const description = (await (await fetch(`${server.url}/openapi.json`)).json()) as Json
    assert.match(text, new RegExp(`Tundish ${description.info.version}`))
    const dashboard = await (await fetch(`${server.adminUrl}/`, { redirect: 'follow' })).text()
    for (const address of ['/docs', '/docs/guides']) assert.match(dashboard, new RegExp(`href="${address}"`))
  } finally {
    await server.stop()
  }
})

const linksOf = (markdown: string) => [...markdown.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)

async function textOf(address: string) {
  const response = await fetch(address)
  return { headers: response.headers, status: response.status, text: await response.text() }
}

async function page(address: string) {
  const response = await fetch(address)
  const text = await response.text()
  assert.equal(response.status, 200, `${address}: ${text.slice(0, 200)}`)
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self'; img-src/)
  assert.doesNotMatch(text, /<script|<[^>]*(?:javascript:|\son[a-z]+=)/i, address)
  return { text }
}
