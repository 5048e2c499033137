// The dashboard with the demo in a browser: its server, and tabs that are signed in.
import { after, afterEach, before } from 'node:test'
import { makeOwnLink } from '../../../src/operator/dashboard/sessions.ts'
import { type OpenBrowser, openBrowser } from '../../support/browser.ts'
import type { TestServer } from '../../support/server.ts'
import { startDemoServer } from './demo-database.ts'

export interface Look {
  width: number
  colorScheme: 'light' | 'dark'
}

export const DESKTOP: Look = { width: 1440, colorScheme: 'light' }
export const DARK_DESKTOP: Look = { width: 1440, colorScheme: 'dark' }
export const PHONE: Look = { width: 390, colorScheme: 'light' }
export const DARK_PHONE: Look = { width: 390, colorScheme: 'dark' }

/** For the tests of a `describe`. */
export function setUpDemoBrowser() {
  let server: TestServer
  let opened: OpenBrowser
  before(async () => {
    server = await startDemoServer({ WEBHOOK_ALLOW_PRIVATE: 'true' })
    opened = await openBrowser()
  })
  afterEach(() => opened?.leavePages())
  after(async () => {
    await opened?.close()
    await server?.stop()
  })

  /** Opens a tab that is signed in. Its context must stay open, because this browser ends when a context is closed. */
  async function visitor(look: Look, { javaScriptEnabled = true } = {}) {
    const { width, colorScheme } = look
    const context = await opened.browser.newContext({
      viewport: { width, height: 900 },
      colorScheme,
      javaScriptEnabled,
      bypassCSP: false,
    })
    const page = await context.newPage()
    // Errors and warnings on the console, and requests to other hosts.
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

    /** Opens a page of the dashboard and waits for its script. */
    async function open(path: string) {
      const response = await page.goto(server.adminUrl + path, { waitUntil: 'load' })
      await page.waitForSelector('html.scripted')
      return response!
    }
    return { page, open, complaints }
  }

  return {
    get server() {
      return server
    },
    visitor,
  }
}
