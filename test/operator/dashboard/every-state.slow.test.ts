// States of the dashboard in a browser: without records, without results, refused, signed out, with every form open.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { noBrowser } from '../../support/browser.ts'
import { titled } from '../../support/titled.ts'
import { findings } from './axe.ts'
import { DARK_PHONE, DESKTOP, setUpDemoBrowser } from './demo-browser.ts'
import { objectPages } from './more-pages.ts'

const LISTS = 'funnels revenue subscriptions charges refunds erasures webhooks sync merchant-accounts settings'.split(
  ' ',
)

describe(titled('every state of the dashboard in a browser', noBrowser), { skip: noBrowser }, () => {
  const demo = setUpDemoBrowser()
  let objects: string[]
  let empty: string
  before(async () => {
    objects = await objectPages(demo.server)
    empty = (await demo.server.project()).id
    await demo.server.db.query(`update profiles set email = 'twins@example.com', email_folded = 'twins@example.com'
      where project_id = 'demo' and id in (select id from profiles where project_id = 'demo' and email is not null order by id limit 2)`)
    await demo.server.db.query(
      `insert into organizations (id, name, created_at) values ('bare', 'Bare', db_clock() - interval '1 day')`,
    )
  })

  const assertFine = async (page: Page, path: string) => {
    assert.deepEqual(await findings(page), [], path)
    const width = page.viewportSize()!.width
    assert.ok(((await page.evaluate('document.documentElement.scrollWidth')) as number) <= width, `${path} is too wide`)
  }

  for (const look of [DESKTOP, DARK_PHONE]) {
    const name = `${look.width} px, ${look.colorScheme}`

    test(`${name}: pages without records or results are fine, and say what to do next`, async () => {
      const { page, open, complaints } = await demo.visitor(look)
      const paths = ['', ...LISTS].map((path) => `/${path}?project=${empty}`)
      paths.push('/people', '/people?q=nobody', '/revenue?project=all:bare', '/subscriptions?project=all:demo')
      for (const path of paths) {
        assert.equal((await open(path)).status(), 200, path)
        await assertFine(page, path)
        if (!/sync|settings/.test(path)) assert.ok(await page.isVisible('.empty, .now .open'), path)
      }
      assert.deepEqual(complaints, [])
      await open('/people?q=twins@example.com')
      assert.equal(await page.locator('#found tbody tr td:first-child:text("Profile")').count(), 2)
      await assertFine(page, 'results')
    })

    test(`${name}: refused pages and the sign-in are fine, and lead further`, async () => {
      const { page } = await demo.visitor(look)
      const at = async (path: string, status: number, link: string) => {
        const response = await page.goto(demo.server.adminUrl + path, { waitUntil: 'load' })
        assert.equal(response!.status(), status, path)
        assert.ok(await page.isVisible(link), path)
        await assertFine(page, path)
      }
      await at('/people/nobody?project=demo', 404, '#search')
      await at('/charges/demo/nothing', 404, '#search')
      await at('/?project=nothing', 404, 'main a:text("Today")')
      await at('/revenue?from=2026-02-01&to=2026-01-01', 400, 'main a:text("Today")')
      await at('/sign-in?token=used', 401, '#operator_key')
      await at('/sign-in', 200, '#operator_key')
    })

    test(`${name}: every form is fine when it is open`, async () => {
      const { page, open } = await demo.visitor(look)
      const paths = ['keys', 'projects', 'webhooks', 'merchant-accounts', 'settings'].map(
        (path) => `/${path}?project=demo`,
      )
      let forms = 0
      for (const path of ['/revenue', ...paths, ...objects]) {
        await open(path)
        await page.evaluate(`document.querySelectorAll('details').forEach((one) => { one.open = true })`)
        await assertFine(page, path)
        forms += await page.locator('.action-form form:visible').count()
      }
      assert.ok(forms > 15)
    })
  }
})
