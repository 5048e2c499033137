// The home page, the guides and the reference in a real browser: everything is on them, and they request nothing from other hosts.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import type { Page } from 'playwright-core'
import { noBrowser, type OpenBrowser, openBrowser } from '../../support/browser.ts'
import { titled } from '../../support/titled.ts'
import { setUpListener } from './listener.ts'

interface Operation {
  summary: string
  tags: string[]
}

describe(titled('in a browser', noBrowser), { skip: noBrowser }, () => {
  let opened: OpenBrowser
  before(async () => {
    opened = await openBrowser()
  })
  after(() => opened.close())

  for (const side of ['public', 'operator'] as const) {
    describe(`the pages of the ${side} listener`, () => {
      const site = setUpListener(side)

      test('/docs shows every operation and sends no request to another host', async () => {
        const page = await opened.browser.newPage({ viewport: { width: 1400, height: 1000 } })
        await look(page, site.listener, site.url)
      })

      test('home page and guides: no error and no request to another host', async () => {
        const tab = await opened.browser.newPage({ viewport: { width: 390, height: 800 } })
        const problems: string[] = []
        tab.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
        tab.on('request', (request) => new URL(request.url()).origin === site.url || problems.push(request.url()))
        for (const path of [...(side === 'public' ? ['/'] : []), '/docs/guides', '/docs/guides/configuration']) {
          await tab.goto(site.url + path)
          if (process.env['SCREENSHOT'])
            await tab.screenshot({ path: `${process.env['SCREENSHOT']}${side}${path.replaceAll('/', '-')}.png` })
          const wide = await tab.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth')
          assert.equal(wide, false, `${path} is wider than a phone`)
        }
        assert.deepEqual(problems, [])
      })
    })
  }
})

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
