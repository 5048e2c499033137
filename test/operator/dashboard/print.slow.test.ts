// Pages on paper, from the dark theme too: dark text, charts in light colors, whole tables; of a receipt nothing but the receipt.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noBrowser, openBrowser } from '../../support/browser.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { insert } from '../../support/data.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'
import { DARK_DESKTOP, setUpDemoBrowser } from './demo-browser.ts'

describe(titled('paper', noBrowser), { skip: noBrowser }, () => {
  test('a receipt is printed in dark text, without buttons and hints', async () => {
    const dashboard = await startDashboard()
    const opened = await openBrowser()
    try {
      const { key } = await dashboard.operator('write')
      const cookie = await dashboard.signIn(key)
      await insert(dashboard.server.db, dashboard.project, { profiles: [{ id: 'profile' }] })
      await dashboard.visit('/people/profile/erase', { cookie, form: { confirm: 'profile' } })
      const page = await opened.browser.newPage({ colorScheme: 'dark' })
      await page.goto(`${dashboard.origin}/erasures/profile`)
      await page.fill('#operator_key', key)
      await page.click('button')
      await page.waitForSelector('.receipt')
      await page.click('.who [value="dark"]')
      await page.waitForSelector('html[data-theme="dark"] .receipt')
      await page.waitForSelector('html.scripted')
      const color = () => page.evaluate('getComputedStyle(document.querySelector(".receipt")).color')
      const shown = () => page.locator('main .copy:visible, main p.quiet:visible').count()
      assert.deepEqual([await color(), await shown()], ['rgb(230, 233, 239)', 2])
      await page.emulateMedia({ media: 'print' })
      assert.deepEqual([await color(), await shown()], ['rgb(27, 34, 48)', 0])
    } finally {
      await opened.close()
      await dashboard.stop()
    }
  })

  const demo = setUpDemoBrowser()

  test('tables and charts fit on A4 with nothing cut off, and charts have the colors of the light theme', async () => {
    const { page, open } = await demo.visitor(DARK_DESKTOP)
    for (const path of ['/', '/revenue', '/subscriptions', '/charges', '/refunds', '/people', '/audit', '/keys']) {
      await page.setViewportSize({ width: 1440, height: 900 })
      await page.emulateMedia({ media: 'screen' })
      await open(path)
      const have = async (color: string) =>
        ((await page.evaluate(LABEL_COLORS)) as string[]).every((one) => one === color)
      await until(`charts of ${path} in dark colors`, () => have(DARK_LABEL))
      await page.emulateMedia({ media: 'print' })
      await until(`charts of ${path} in light colors`, () => have(LIGHT_LABEL))
      await page.setViewportSize({ width: PAPER_WIDTH, height: 900 })
      assert.deepEqual(await page.evaluate(CUT_OFF), [], path)
    }
  })
})

// A4 less the margins of a browser, at 96 pixels an inch.
const PAPER_WIDTH = 718
const DARK_LABEL = 'rgb(163, 173, 189)'
const LIGHT_LABEL = 'rgb(86, 96, 114)'
const LABEL_COLORS = `[...document.querySelectorAll('.chart canvas')].map((one) => Chart.getChart(one).options.scales.x.ticks.color)`
const CUT_OFF = `[...document.querySelectorAll('main :is(table, canvas, .cut, .id > *)')]
  .filter((one) => one.checkVisibility() && (one.getBoundingClientRect().right > innerWidth + 1 || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow === 'hidden'))
  .map((one) => one.id || one.textContent.slice(0, 40))`
