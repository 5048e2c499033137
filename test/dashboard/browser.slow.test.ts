// The dashboard in a browser, filled with the demo: nothing is wrong with any page, by keyboard and without scripts.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { makeOwnLink } from '../../src/dashboard/sessions.ts'
import { prepareDemo } from '../../src/demo/demo.ts'
import { followAll } from '../../src/figures/follow.ts'
import { noBrowser, type OpenBrowser, openBrowser } from '../support/browser.ts'
import { startTestServer, type TestServer } from '../support/server.ts'
import { longTexts, objectPages } from './more-pages.ts'

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const PAGES = [
  '/',
  '/funnels',
  '/funnels/fun_sleep',
  '/revenue?period=12m',
  '/revenue?project=all:demo&split=project',
  '/subscriptions',
  '/charges',
  '/refunds',
  '/people?q=user_1',
  '/webhooks',
  '/sync',
  '/erasures',
  '/doctor',
  '/audit',
  '/projects',
  '/keys',
  '/merchant-accounts',
  '/settings',
]
const LOOKS = [
  { width: 1440, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
  { width: 390, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
] as const

describe('the dashboard in a browser', { skip: noBrowser }, () => {
  let server: TestServer
  let opened: OpenBrowser
  before(async () => {
    server = await startTestServer({ WEBHOOK_ALLOW_PRIVATE: 'true' }, { worker: false })
    await prepareDemo(server.app, { url: server.url, adminUrl: server.adminUrl })
    await followAll(server.db)
    PAGES.push(...(await objectPages(server)))
    opened = await openBrowser()
  })
  after(async () => {
    await opened?.close()
    await server?.stop()
  })

  /** A browser that is signed in, and what it complained about. This browser ends with the first context that is closed. */
  async function visitor(look: { width: number; colorScheme: 'light' | 'dark' }, javaScriptEnabled = true) {
    const { width, colorScheme } = look
    const context = await opened.browser.newContext({
      viewport: { width, height: 900 },
      colorScheme,
      javaScriptEnabled,
      bypassCSP: false,
    })
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => {
      if (!request.url().startsWith(server.adminUrl)) complaints.push(`asked ${request.url()}`)
    })
    const token = await server.db.tx((query) => makeOwnLink(query, 'browser'))
    await page.goto(`${server.adminUrl}/sign-in?token=${token}`)
    await page.waitForURL(`${server.adminUrl}/`)
    return { page, complaints }
  }

  for (const look of LOOKS) {
    test(`every page at ${look.width} px, ${look.colorScheme}: no complaint, nothing beyond the edge, no finding of axe`, async () => {
      const { page, complaints } = await visitor(look)
      for (const path of PAGES) {
        const answer = await page.goto(server.adminUrl + path, { waitUntil: 'load' })
        assert.equal(answer!.status(), 200, path)
        await page.waitForSelector('html.scripted')
        assert.ok(
          ((await page.evaluate('document.documentElement.scrollWidth')) as number) <= look.width,
          `${path} is too wide`,
        )
        assert.deepEqual(await findings(page), [], path)
        assert.deepEqual(complaints, [], path)
      }
    })
  }

  test('a wide table at 390 px is scrolled, and the name of each row stays in sight', async () => {
    const { page } = await visitor(LOOKS[2])
    await page.goto(`${server.adminUrl}/revenue?project=demo&period=12m`, { waitUntil: 'load' })
    const places = (await page.evaluate(`(() => {
      const scroll = document.querySelector('#country').closest('.scroll')
      const left = () => document.querySelector('#country tbody td').getBoundingClientRect().left
      const before = left()
      scroll.scrollLeft = 100
      return [scroll.scrollLeft, left() - before]
    })()`)) as number[]
    assert.deepEqual(places, [100, 0])
  })

  test('by keyboard alone: the search by a key, a page by the navigation, a form behind its question', async () => {
    const { page } = await visitor(LOOKS[0])
    await page.goto(server.adminUrl, { waitUntil: 'networkidle' })
    await page.keyboard.press('/')
    await page.keyboard.type('user_1')
    await page.keyboard.press('Enter')
    await page.waitForURL(/q=user_1/)
    await page.waitForSelector('#found')
    await page.goto(`${server.adminUrl}/keys`, { waitUntil: 'networkidle' })
    await page.focus('summary:has-text("Create a key")')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.type('by keyboard')
    await page.keyboard.press('Enter')
    await page.waitForSelector('text=It is shown only now')
  })

  test('by keyboard alone every link, button and field of every page is reached, and none holds the focus', async () => {
    const { page } = await visitor(LOOKS[0])
    for (const path of PAGES) {
      await page.goto(server.adminUrl + path, { waitUntil: 'load' })
      await page.waitForSelector('html.scripted')
      assert.deepEqual(await walk(page), [], path)
    }
  })

  test('without scripts every page can be read: its tables and choosers are there, and nothing that needs a script', async () => {
    const { page, complaints } = await visitor(LOOKS[0], false)
    let figures = 0
    for (const path of PAGES) {
      await page.goto(server.adminUrl + path)
      assert.ok(await page.isVisible('h1'), path)
      const shown = await page.locator('canvas:visible, [data-copy]:visible').count()
      assert.equal(shown, 0, path)
      assert.ok(await page.isVisible('.project button'), path)
      for (const figure of await page.locator('figure[data-chart]').all()) {
        await figure.locator('summary').click()
        assert.ok(await figure.locator('tbody tr').first().isVisible(), path)
        figures += 1
      }
    }
    assert.ok(figures > 10)
    assert.deepEqual(complaints, [])
  })

  test('the link to a table as CSV downloads it, and the page stays', async () => {
    const { page } = await visitor(LOOKS[0])
    await page.goto(`${server.adminUrl}/funnels?period=24m`, { waitUntil: 'load' })
    await page.waitForSelector('html.scripted')
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('a:text("CSV")')])
    assert.equal(download.suggestedFilename(), 'funnels.csv')
    assert.ok(page.url().endsWith('/funnels?period=24m'))
    assert.ok(await page.isVisible('#funnels'))
  })

  test('a chart shows the period that is not over in another way', async () => {
    const { page } = await visitor(LOOKS[0])
    await page.goto(`${server.adminUrl}/revenue?period=12m`, { waitUntil: 'load' })
    await page.waitForSelector('html.scripted')
    const drawn = (name: string) => `Chart.getChart(document.querySelector('figure[data-table="${name}"] canvas'))`
    const colors = (await page.evaluate(`${drawn('split')}.data.datasets[0].backgroundColor`)) as string[]
    assert.equal(colors.length, 12)
    assert.deepEqual([...new Set(colors.slice(0, 11))], [colors[0]])
    assert.notEqual(colors[11], colors[0])
    const dashes = (await page.evaluate(
      `[...Array(11).keys()].map((n) => ${drawn('averages')}.config.data.datasets[0].segment.borderDash({ p0DataIndex: n, p1DataIndex: n + 1 }) ?? null)`,
    )) as unknown[]
    assert.deepEqual(dashes, [...Array(10).fill(null), [4, 4]])
    assert.ok(await page.isVisible('text=Dashed: the month that is not over.'))
  })

  test('a table of a page is had as CSV by its link', async () => {
    const { page } = await visitor(LOOKS[0])
    await page.goto(`${server.adminUrl}/funnels?period=24m`, { waitUntil: 'load' })
    const rows = await page.locator('#funnels tbody tr').count()
    const csv = await page.evaluate(`fetch('/funnels?period=24m&csv=funnels').then((answer) => answer.text())`)
    assert.ok(rows >= 3)
    assert.equal((csv as string).split('\r\n').length, rows + 2)
  })

  // Its project is the newest, which pages show unless another is named.
  test('long names, ids and amounts, with every form and list open, stay within 390 px', async () => {
    const paths = await longTexts(server)
    const { page } = await visitor(LOOKS[2])
    for (const path of paths) {
      await page.goto(server.adminUrl + path, { waitUntil: 'load' })
      await page.waitForSelector('html.scripted')
      await page.evaluate(`document.querySelectorAll('details').forEach((one) => { one.open = true })`)
      const beyond = await page.evaluate(`[...document.querySelectorAll('main *')]
        .filter((one) => !one.closest('.scroll') && one.getBoundingClientRect().right > 390.5)
        .map((one) => one.outerHTML.slice(0, 120))`)
      assert.deepEqual(beyond, [], path)
      // A text beyond the edge is in no element's rectangle.
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, path)
    }
  })

  // The last one: requests of scripts have the cookie of the first visitor in this browser, and it ends all sessions.
  test('a guide, an error and the sign-in open as documents of their own', async () => {
    const { page } = await visitor(LOOKS[0])
    const open = async (path: string, link: string) => {
      await page.goto(server.adminUrl + path, { waitUntil: 'load' })
      await page.waitForSelector('html.scripted')
      await page.click(link)
    }
    await open('/funnels?from=2001-01-01&to=2001-01-31', 'main a[href^="/docs/guides"]')
    await page.waitForURL(/\/docs\/guides\/import/)
    assert.equal(await page.locator('link[href="/assets/dashboard.css"]').count(), 0)
    await page.goto(`${server.adminUrl}/revenue?from=2026-01-01&to=2026-01-31`, { waitUntil: 'load' })
    await page.waitForSelector('html.scripted')
    await page.fill('.period input[name="from"]', '2026-03-01')
    await page.click('.period form button')
    await page.waitForSelector('body.alone h1:text("That did not work")')
    await page.goto(server.adminUrl, { waitUntil: 'load' })
    await server.db.query('delete from dashboard_sessions')
    await page.click('.wide nav a:text("Revenue")')
    await page.waitForSelector('body.alone #operator_key')
  })
})

/** Presses Tab once for each place that can have the focus, of which a date has four; returns what never had it. */
async function walk(page: Page): Promise<string[]> {
  const all = (await page.evaluate(`(() => {
    window.reachable = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
      .filter((one) => one.checkVisibility() && !one.disabled && one.type !== 'hidden')
    window.reached = new Set()
    document.addEventListener('focusin', ({ target }) => window.reached.add(target))
    return window.reachable.length + 3 * window.reachable.filter((one) => one.type === 'date').length
  })()`)) as number
  for (let n = 0; n <= all; n += 1) await page.keyboard.press('Tab')
  return (await page.evaluate(
    `window.reachable.filter((one) => !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 120))`,
  )) as string[]
}

/** What axe finds, as rule and place. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return (await page.evaluate(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target + ' ' + failureSummary)))`,
  )) as string[]
}
