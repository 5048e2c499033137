// The dashboard in a browser, filled with the demo: nothing is wrong with any page, and its tables say what the records say.
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

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const PAGES = [
  '/',
  '/funnels',
  '/funnels/fun_sleep',
  '/revenue?period=12m',
  '/subscriptions',
  '/charges',
  '/refunds',
  '/people?q=user_1',
  '/webhooks',
  '/sync',
  '/erasures',
  '/doctor',
  '/audit',
  '/keys',
  '/merchant-accounts',
  '/settings',
]
const LOOKS = [
  { width: 1440, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
  { width: 390, colorScheme: 'light' },
] as const

describe('the dashboard in a browser', { skip: noBrowser }, () => {
  let server: TestServer
  let opened: OpenBrowser
  before(async () => {
    server = await startTestServer({}, { worker: false })
    await prepareDemo(server.app, { url: server.url, adminUrl: server.adminUrl })
    await followAll(server.db)
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
        const answer = await page.goto(server.adminUrl + path, { waitUntil: 'networkidle' })
        assert.equal(answer!.status(), 200, path)
        assert.ok(
          ((await page.evaluate('document.documentElement.scrollWidth')) as number) <= look.width,
          `${path} is too wide`,
        )
        assert.deepEqual(await findings(page), [], path)
        assert.deepEqual(complaints, [], path)
      }
    })
  }

  test('by keyboard alone: the search by a key, a page by the navigation, a form behind its question', async () => {
    const { page } = await visitor(LOOKS[0])
    await page.goto(server.adminUrl, { waitUntil: 'networkidle' })
    await page.keyboard.press('/')
    await page.keyboard.type('user_1')
    await page.keyboard.press('Enter')
    await page.waitForURL(/q=user_1/)
    await page.waitForSelector('#found')
    await page.goto(`${server.adminUrl}/keys`, { waitUntil: 'networkidle' })
    await page.focus('summary:has-text("Make a key")')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.type('by keyboard')
    await page.keyboard.press('Enter')
    await page.waitForSelector('text=It is shown only now')
  })

  test('without scripts every page has its tables, and no empty picture', async () => {
    const { page } = await visitor(LOOKS[0], false)
    await page.goto(`${server.adminUrl}/revenue?period=12m`)
    assert.equal(await page.isVisible('canvas'), false)
    await page.click('summary:has-text("Numbers")')
    assert.ok(await page.isVisible('#split tbody tr'))
  })

  test('the tables of revenue and funnels equal SQL', async () => {
    const { page } = await visitor(LOOKS[0])
    await page.goto(`${server.adminUrl}/revenue?period=24m`, { waitUntil: 'networkidle' })
    const shown = await rows(page, 'revenue')
    const expected = await server.db.query(
      // Who has no profile has no transaction: their payments are in the report alone.
      `select to_char(at at time zone 'UTC', 'YYYY-MM') as month, sum(cents) / 100.0 as gross from (
         select t.created_at, t.price_usd from transactions t join profiles p on p.id = t.profile_id where not p.preview
         union all
         select r.trx_created_at, r.amount_usd * 100 from report_transactions r join customers c using (external_id)
         where c.profile_id is null and r.psp_transaction_type = 'sale' and r.status = 'succeeded') sales (at, cents)
       group by 1`,
    )
    const gross = new Map(expected.map(({ month, gross }) => [month, Number(gross)]))
    assert.ok(shown.length >= 23)
    for (const [month, value] of shown) assert.equal(Number(value), gross.get(month!) ?? 0, month)
    await page.goto(`${server.adminUrl}/funnels?period=24m`, { waitUntil: 'networkidle' })
    const sessions = await server.db.query(
      `select s.funnel_id as id, count(*) as n from sessions s join profiles p on p.id = s.profile_id
       where not p.preview group by 1 order by 2 desc`,
    )
    const inTable = (await rows(page, 'funnels')).map(([id, n]) => [id, n])
    assert.deepEqual(
      inTable,
      sessions.map(({ id, n }) => [id, n]),
    )
    const csv = await page.evaluate(`fetch('/funnels?period=24m&csv=funnels').then((answer) => answer.text())`)
    assert.equal((csv as string).split('\r\n').length, sessions.length + 2)
  })
})

/** What axe finds, as rule and place. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return (await page.evaluate(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target + ' ' + failureSummary)))`,
  )) as string[]
}

/** The plain values of a table's rows. */
const rows = (page: Page, id: string) =>
  page.evaluate(
    `[...document.querySelectorAll('#${id} tbody tr')].map((row) => [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent.trim()))`,
  ) as Promise<string[][]>
