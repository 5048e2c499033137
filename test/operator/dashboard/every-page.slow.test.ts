// Every page of the dashboard in a browser, filled with the demo: no finding of axe, usable with the keyboard alone, readable without scripts.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { pages } from '../../../src/operator/dashboard/routes.ts'
import { noBrowser } from '../../support/browser.ts'
import { titled } from '../../support/titled.ts'
import { findings } from './axe.ts'
import { DARK_PHONE, DESKTOP, type Look, PHONE, setUpDemoBrowser } from './demo-browser.ts'
import { longTexts, objectPages } from './more-pages.ts'

const PAGES = [
  ...Object.keys(pages).filter((path) => !path.includes(':')),
  '/funnels/fun_sleep',
  '/funnels/fun_sleep/screens/scr_2',
  '/revenue?period=12m',
  '/revenue?country=BR&split=product',
  '/revenue?project=all:demo&split=project',
  '/payments?period=12m&country=DE',
  '/people?q=user_1',
  '/charges?reason=insufficient_funds',
  '/acquisition?period=12m&split=campaign',
  '/worth?since=session&split=source',
  '/churn?period=12m&split=reason',
]

describe(titled('every page of the dashboard in a browser', noBrowser), { skip: noBrowser }, () => {
  const demo = setUpDemoBrowser()
  before(async () => {
    PAGES.push(...(await objectPages(demo.server)))
  })

  interface Opened {
    path: string
    html: string
    unreached: string[]
  }
  async function openAll(look: Look): Promise<Opened[]> {
    const opened: Opened[] = []
    const { page, open, complaints } = await demo.visitor(look)
    for (const path of PAGES) {
      const response = await open(path)
      assert.equal(response.status(), 200, path)
      assert.ok(
        ((await page.evaluate('document.documentElement.scrollWidth')) as number) <= look.width,
        `${path} is too wide`,
      )
      assert.deepEqual(await findings(page), [], path)
      assert.deepEqual(complaints, [], path)
      if (look === DESKTOP) opened.push({ path, html: await response.text(), unreached: await walk(page) })
    }
    return opened
  }
  // Three tests look at these, because it takes long to open them all.
  let onDesktop: Promise<Opened[]> | undefined
  const openedOnDesktop = () => (onDesktop ??= openAll(DESKTOP))

  // Colors go by the scheme, room by the width: two looks have them all.
  for (const look of [DESKTOP, DARK_PHONE]) {
    test(`every page at ${look.width} px, ${look.colorScheme}: nothing on the console, nothing wider than the screen, no finding of axe`, async () => {
      await (look === DESKTOP ? openedOnDesktop() : openAll(look))
    })
  }

  test('every link, button and field can be reached by Tab (of a table in its first rows), and none traps the focus', async () => {
    for (const { path, unreached } of await openedOnDesktop()) assert.deepEqual(unreached, [], path)
  })

  test('on the second page of a list every link to another choice of the page opens', async () => {
    const { page } = await demo.visitor(DESKTOP)
    const get = async (path: string) => {
      const response = await page.request.get(demo.server.adminUrl + path)
      assert.equal(response.status(), 200, path)
      return response.text()
    }
    let lists = 0
    let choices = 0
    for (const { path, html } of await openedOnDesktop()) {
      for (const [, next] of html.matchAll(/href="([^"]+)">Next page/g)) {
        lists += 1
        const links = (await get(unescaped(next!))).matchAll(/href="(\/[^"#]*)/g)
        const others = [...links].map(([, link]) => unescaped(link!)).filter((link) => pathOf(link) === pathOf(path))
        const kinds = Map.groupBy(others, (link) => [...new URL(link, 'http://x').searchParams.keys()].sort().join())
        choices += kinds.size
        for (const [link] of kinds.values()) await get(link!)
      }
    }
    assert.ok(lists > 5 && choices > 30, `${lists} lists, ${choices} choices`)
  })

  test('without scripts every page can be read: its tables and choosers are there, and nothing that needs a script', async () => {
    const { page, complaints } = await demo.visitor(DESKTOP, { javaScriptEnabled: false })
    let figures = 0
    for (const path of PAGES) {
      await page.goto(demo.server.adminUrl + path)
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

  test('an amount of up to twelve characters in a tile is on one line', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    for (const path of ['/', '/revenue', '/churn', '/acquisition', '/charges', '/subscriptions']) {
      await open(`${path}?project=demo`)
      for (const width of [1920, 1440, 1366, 1281, 1250, 1100, 1024, 962, 820, 769, 700, 390, 360]) {
        await page.setViewportSize({ width, height: 900 })
        const broken = await page.evaluate(`(() => {
          const lines = (one, isWide, text) => {
            one.className = ''
            one.closest('.tiles').classList.toggle('wide', isWide)
            one.textContent = text
            const range = document.createRange()
            range.selectNodeContents(one)
            return range.getClientRects().length
          }
          return [...document.querySelectorAll('.tile strong')]
            .filter((one) => lines(one, true, 'US$16,323.75') > 1 || lines(one, false, '$6,323.75') > 1)
            .map((one) => one.closest('.tile').textContent.trim())
        })()`)
        assert.deepEqual(broken, [], `${path} at ${width} px`)
      }
    }
  })

  test('a large amount in a tile is not cut', async () => {
    for (const look of [DESKTOP, PHONE]) {
      const { page, open } = await demo.visitor(look)
      for (const path of ['/', '/revenue', '/subscriptions']) {
        await open(`${path}?project=demo`)
        for (const which of ['.tile :is(strong, .before)', '.tile dd > .quiet'])
          assert.deepEqual(
            await page.evaluate(`(() => {
          const numbers = [...document.querySelectorAll('${which}')]
          for (const one of numbers) {
            one.classList.add('long')
            one.textContent = 'UGX\u00a01,234,567,890,123.45'
          }
          const right = (one) => one.getBoundingClientRect().right
          return numbers.filter((one) => one.scrollWidth > one.clientWidth + 1 || right(one) > right(one.closest('.tile')))
            .map((one) => one.outerHTML)
        })()`),
            [],
            `${path} at ${look.width} px`,
          )
      }
    }
  })

  // Its project is the newest, which pages show unless another is named.
  test('long names, ids and amounts, with every form and list open, stay within 390 px', async () => {
    const paths = await longTexts(demo.server)
    const { page, open } = await demo.visitor(PHONE)
    for (const path of paths) {
      await open(path)
      await page.evaluate(`document.querySelectorAll('details').forEach((one) => { one.open = true })`)
      const beyond = await page.evaluate(`[...document.querySelectorAll('main *')]
        .filter((one) => !one.closest('.scroll') && one.getBoundingClientRect().right > 390.5)
        .map((one) => one.outerHTML.slice(0, 120))`)
      assert.deepEqual(beyond, [], path)
      // A text beyond the edge is in no element's rectangle.
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, path)
    }
  })
})

const unescaped = (link: string) => link.replaceAll('&amp;', '&')
const pathOf = (link: string) => link.split('?')[0]

/** Presses Tab once for each place that can have the focus, of which a date has four; returns what never had it. */
async function walk(page: Page): Promise<string[]> {
  const all = (await page.evaluate(`(() => {
    document.querySelectorAll('tbody tr:nth-child(n + 4)').forEach((row) => row.remove())
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
