// The reference page in a real browser: everything is on it, and it asks nobody but us.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import type { Page } from 'playwright-core'
import { unconnectedListener } from '../../scripts/openapi.ts'
import { noBrowser, openBrowser } from '../support/browser.ts'

interface Operation {
  summary: string
  tags: string[]
}

for (const side of ['public', 'operator'] as const) {
  describe(`the description of the ${side} listener`, () => {
    let listener: FastifyInstance
    let url: string
    before(async () => {
      listener = await unconnectedListener(side)
      url = await listener.listen({ host: '127.0.0.1', port: 0 })
    })
    after(() => listener.close())

    test('/openapi.json is the document of the routes', async () => {
      const answer = await fetch(`${url}/openapi.json`)
      assert.equal(answer.status, 200)
      assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
      assert.deepEqual(await answer.json(), JSON.parse(JSON.stringify(listener.swagger())))
    })

    test('200 for /docs, and /docs/ leads there', async () => {
      for (const path of ['/docs', '/docs/']) {
        const answer = await fetch(url + path)
        assert.equal(answer.status, 200)
        assert.equal(answer.url, `${url}/docs`)
        assert.match(await answer.text(), /<title>Tundish reference<\/title>/)
      }
    })

    const title = '/docs in a browser shows every operation and sends no request to another host'
    test(noBrowser ? `${title} (skipped: ${noBrowser})` : title, { skip: noBrowser !== undefined }, async () => {
      const { browser, close } = await openBrowser()
      try {
        await look(await browser.newPage({ viewport: { width: 1400, height: 1000 } }), listener, url)
      } finally {
        await close()
      }
    })
  })
}

async function look(page: Page, listener: FastifyInstance, url: string): Promise<void> {
  const seen = watch(page)
  await page.goto(`${url}/docs`)
  for (const { summary, tags } of operations(listener)) {
    for (const text of [summary, tags[0]!]) {
      await page.getByText(text, { exact: true }).first().waitFor({ state: 'attached', timeout: 20_000 })
    }
  }
  if (process.env['SCREENSHOT']) await page.screenshot({ path: process.env['SCREENSHOT'] })
  assert.deepEqual(seen.problems, [])
  assert.deepEqual([...seen.hosts], [new URL(url).host])
}

function operations(listener: FastifyInstance): Operation[] {
  const { paths } = JSON.parse(JSON.stringify(listener.swagger())) as {
    paths: Record<string, Record<string, Operation>>
  }
  const found = Object.values(paths).flatMap((path) => Object.values(path))
  assert.ok(found.length >= 15, `only ${found.length} operations are described`)
  return found
}

/** Collects whom the page asks, and what its policy or a mistake kept from working. */
function watch(page: Page) {
  const hosts = new Set<string>()
  const problems: string[] = []
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url())
    if (protocol !== 'data:' && protocol !== 'blob:') hosts.add(host)
  })
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text())
  })
  return { hosts, problems }
}
