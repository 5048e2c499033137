// A receipt on paper, from the dark theme too: dark text, and nothing but the receipt.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noBrowser, openBrowser } from '../support/browser.ts'
import { startDashboard } from '../support/dashboard.ts'
import { insert } from '../support/data.ts'

describe('paper', { skip: noBrowser }, () => {
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
})
