// Links and forms in a browser: a link of another site, a session that ends in the middle of a form, the way back.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { noBrowser, type OpenBrowser, openBrowser } from '../../support/browser.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { titled } from '../../support/titled.ts'

describe(titled('links and forms in a browser', noBrowser), { skip: noBrowser }, () => {
  let dashboard: Awaited<ReturnType<typeof startDashboard>>
  let opened: OpenBrowser
  let elsewhere: Server
  let page: Page
  let key: string

  before(async () => {
    dashboard = await startDashboard()
    key = (await dashboard.operator('write')).key
    elsewhere = createServer((request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<a href="${dashboard.origin}${request.url}">look at this</a>`)
    }).listen(0, 'localhost')
    opened = await openBrowser()
    page = await opened.browser.newPage()
    await page.goto(`${dashboard.origin}/settings`)
    await signIn()
  })
  after(async () => {
    await opened?.close()
    elsewhere?.close()
    await dashboard?.stop()
  })

  const signIn = async () => {
    await page.fill('#operator_key', key)
    await page.click('button')
  }
  const heading = () => page.locator('h1').textContent()

  test('signing in leads on to the page that was asked for', async () => {
    await page.waitForURL(`${dashboard.origin}/settings`)
    assert.equal(await heading(), 'Settings')
  })

  test('a link on another site opens its page, with the session of the visitor', async () => {
    const { port } = elsewhere.address() as AddressInfo
    await page.goto(`http://localhost:${port}/keys?project=${dashboard.project.id}`)
    await page.click('a')
    await page.waitForSelector('h1:text("Keys")')
    assert.equal(page.url(), `${dashboard.origin}/keys?project=${dashboard.project.id}`)
  })

  test('a form whose session has ended does nothing, and its page is there again after the sign-in', async () => {
    await page.goto(`${dashboard.origin}/keys`)
    await page.click('summary:has-text("Create a key")')
    await page.fill('details[open] input[name="name"]', 'never made')
    await dashboard.server.db.query('delete from dashboard_sessions')
    await page.click('details[open] button')
    await page.waitForSelector('h1:text("Signed out")')
    await page.click('a:text("Sign in")')
    await signIn()
    await page.waitForSelector('h1:text("Keys")')
    assert.ok(!(await page.textContent('main'))!.includes('never made'))
  })

  test('the Back button of the browser goes through the choices of a page', async () => {
    await page.goto(`${dashboard.origin}/audit`)
    await page.fill('input[name="target"]', 'nothing')
    await page.click('button:text("Filter")')
    await page.waitForURL(/target=nothing/)
    await page.click('.wide nav a:text("Keys")')
    await page.waitForURL(/\/keys/)
    await page.goBack()
    await page.waitForURL(/target=nothing/)
    assert.equal(await page.inputValue('input[name="target"]'), 'nothing')
    await page.goBack()
    await page.waitForURL(/\/audit$/)
    await page.waitForSelector('h1:text("Audit log")')
    assert.equal(await page.inputValue('input[name="target"]'), '')
  })
})
