// Parts of the dashboard in a browser, filled with the demo: tables, charts, the keyboard, and links to other documents.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noBrowser } from '../../support/browser.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'
import { DESKTOP, PHONE, setUpDemoBrowser } from './demo-browser.ts'

describe(titled('the dashboard in a browser', noBrowser), { skip: noBrowser }, () => {
  const demo = setUpDemoBrowser()

  test('a wide table at 390 px is scrolled, and the name of each row stays in sight', async () => {
    const { page } = await demo.visitor(PHONE)
    await page.goto(`${demo.server.adminUrl}/revenue?project=demo&period=12m&split=country`, { waitUntil: 'load' })
    const places = (await page.evaluate(`(() => {
      const scroll = document.querySelector('#country').closest('.scroll')
      const left = () => document.querySelector('#country tbody td').getBoundingClientRect().left
      const before = left()
      scroll.scrollLeft = 100
      return [scroll.scrollLeft, left() - before]
    })()`)) as number[]
    assert.deepEqual(places, [100, 0])
  })

  test('the search and a form can be used with the keyboard alone', async () => {
    const { page } = await demo.visitor(DESKTOP)
    await page.goto(demo.server.adminUrl, { waitUntil: 'networkidle' })
    await page.keyboard.press('/')
    await page.keyboard.type('ada')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/people\/pro_/)
    await page.waitForSelector('h2:text("History")')
    await page.goto(`${demo.server.adminUrl}/keys`, { waitUntil: 'networkidle' })
    await page.focus('summary:has-text("Create a key")')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.type('by keyboard')
    await page.keyboard.press('Enter')
    await page.waitForSelector('text=It is shown only now')
  })

  test('a link moves the focus to the title of its page, and a filter or the next page of a list to the list', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    const focused = (part: string) =>
      until(`the focus to be on ${part}`, () =>
        page.evaluate(
          `document.activeElement !== document.body && document.activeElement.outerHTML.includes('${part}')`,
        ),
      )
    const inSight = (selector: string) =>
      page.evaluate(
        `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector('${selector}').getBoundingClientRect())`,
      )
    await open('/charges?project=demo')
    await page.click('.wide nav a:text-is("Settings")')
    await focused('>Settings</h1>')
    assert.ok(await inSight('.wide a[aria-current]'))
    await open('/charges?project=demo')
    await page.click('a:text("Next page")')
    await focused('>Declined payments</h2>')
    await page.focus('.filters select[name="decline"]')
    await page.keyboard.press('ArrowDown')
    await page.waitForURL(/decline=soft/)
    await focused('<select name="decline"')
    assert.ok(await inSight('.filters select[name="decline"]'))
  })

  test('a link that is followed before an earlier one has loaded replaces it', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/?project=demo')
    const held = Promise.withResolvers<void>()
    await page.route('**/revenue?**', (route) => held.promise.then(() => route.continue()).catch(() => undefined))
    const earlier = new Promise((resolve) => {
      for (const name of ['requestfailed', 'requestfinished'] as const)
        page.on(name as 'requestfailed', (one) => one.url().includes('/revenue?') && resolve(one.failure()?.errorText))
    })
    await page.click('.wide nav a:text-is("Revenue")')
    await page.click('.wide nav a:text-is("Funnels")')
    await page.waitForSelector('h1:text("Funnels")')
    held.resolve()
    assert.equal(await earlier, 'net::ERR_ABORTED')
    await page.unroute('**/revenue?**')
    assert.equal(await page.locator('h1').textContent(), 'Funnels')
    assert.match(page.url(), /\/funnels\?/)
  })

  test('what became of a form has the focus, and a double click sends it once', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    const create = async (name: string) => {
      await page.click('summary:has-text("Create a key") >> nth=0')
      await page.fill('.action-form[open] input[name="name"]', name)
      await page.dblclick('.action-form[open] form button')
    }
    await open('/keys?project=demo')
    await create('x'.repeat(200))
    await page.waitForSelector('.failed:focus')
    await page.fill('.action-form[open] input[name="name"]', 'clicked twice')
    await page.dblclick('.action-form[open] form button')
    await page.waitForSelector('text=It is shown only now')
    await open('/keys?project=demo')
    assert.equal(await page.locator('td:text-is("clicked twice")').count(), 1)
  })

  test('a reload does not say again that a form was done', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/settings?project=demo')
    await page.click('summary:text("Change erasures")')
    await page.click('.action-form[open] form button')
    await page.waitForSelector('text=The settings were saved.')
    await page.reload()
    await page.waitForSelector('h1:text("Settings")')
    assert.equal(await page.locator('.done').count(), 0)
    assert.equal(new URL(page.url()).search, '?project=demo')
  })

  test('a form over the page closes the one below it, and that of a row is in sight at 390 px', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    const opened = () => page.locator('details[open] > summary').allInnerTexts()
    await open('/settings?project=demo')
    await page.click('summary:text("Change erasures")')
    await page.focus('summary:text("Change custom charges")')
    await page.keyboard.press('Enter')
    assert.deepEqual(await opened(), ['Change custom charges…'])
    await page.keyboard.press('Tab')
    await page.keyboard.press('Escape')
    assert.deepEqual(await opened(), [])
    assert.equal(await page.textContent(':focus'), 'Change custom charges…')
    await open('/revenue?project=demo')
    await page.click('.period summary >> nth=0')
    await page.click('.chooser summary')
    assert.deepEqual(await opened(), ['Filter'])
    const phone = await demo.visitor(PHONE)
    await phone.open('/keys?project=demo')
    await phone.page.click('td summary:text("Rotate") >> nth=0')
    await until('the form to be in sight', () =>
      phone.page.evaluate(
        `(({ left, right }) => left >= 152 && right <= 390)(document.querySelector('td [open] form').getBoundingClientRect())`,
      ),
    )
  })

  test('the title of the tab stays that of the page when a part of it is loaded from another page', async () => {
    const { page } = await demo.visitor(DESKTOP)
    await page.goto(`${demo.server.adminUrl}/`, { waitUntil: 'networkidle' })
    await page.waitForSelector('span[hx-get*="/doctor"] >> text=As of')
    assert.equal(await page.title(), 'Today · Tundish')
  })

  test('the link to a table as CSV downloads it, and the page stays', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/funnels?period=24m')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.click('section:has(#funnels) a:text("CSV")'),
    ])
    assert.match(download.suggestedFilename(), /^Better-sleep_funnels_[\d-]+_[\d-]+_USD\.csv$/)
    assert.ok(page.url().endsWith('/funnels?period=24m'))
    assert.ok(await page.isVisible('#funnels'))
  })

  test('the CSV of a table has a line for each of its rows', async () => {
    const { page } = await demo.visitor(DESKTOP)
    await page.goto(`${demo.server.adminUrl}/funnels?period=24m`, { waitUntil: 'load' })
    const rows = await page.locator('#funnels tbody tr').count()
    const csv = await page.evaluate(`fetch('/funnels?period=24m&csv=funnels').then((answer) => answer.text())`)
    assert.ok(rows >= 3)
    assert.equal((csv as string).split('\r\n').length, rows + 2)
  })

  test('a chart shows the period that is not over in another color, or dashed', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/revenue?period=12m')
    const drawn = (name: string) => `Chart.getChart(document.querySelector('figure[data-table="${name}"] canvas'))`
    const colors = (await page.evaluate(`${drawn('split')}.data.datasets[0].backgroundColor`)) as string[]
    assert.equal(colors.length, 12)
    assert.deepEqual([...new Set(colors.slice(0, 11))], [colors[0]])
    assert.notEqual(colors[11], colors[0])
    assert.ok(await page.isVisible('.incomplete:has-text("Faded: the month that is not over.")'))
    // Few points are bars.
    await open('/revenue?period=24m')
    const dashes = (await page.evaluate(
      `[...Array(23).keys()].map((n) => ${drawn('averages')}.config.data.datasets[0].segment.borderDash({ p0DataIndex: n, p1DataIndex: n + 1 }) ?? null)`,
    )) as unknown[]
    assert.deepEqual(dashes, [...Array(22).fill(null), [4, 4]])
    assert.ok(await page.isVisible('text=Dashed: the month that is not over.'))
  })

  test('the labels of an axis are its values, of which none is rounded to another', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    for (const path of [
      '/',
      '/revenue',
      '/subscriptions',
      '/subscriptions?period=12m',
      '/charges',
      '/refunds?period=7d',
    ]) {
      await open(path)
      const axes = (await page.evaluate(`[...document.querySelectorAll('.chart canvas')].flatMap((one) =>
        Object.values(Chart.getChart(one).scales).filter(({ axis }) => axis === 'y').map(({ ticks }) => ticks.map(({ label }) => label)))`)) as string[][]
      assert.ok(axes.length > 0, path)
      for (const labels of axes) assert.equal(new Set(labels).size, labels.length, `${path}: ${labels.join(' ')}`)
    }
  })

  test('days of more than a year are labeled with their year, others without', async () => {
    const { open, page } = await demo.visitor(DESKTOP)
    for (const [period, label] of [
      ['90d', /^\d+ [A-Z][a-z]{2}$/],
      ['24m', /^\d+ [A-Z][a-z]{2} \d{4}$/],
    ] as const) {
      await open(`/revenue?period=${period}&by=day`)
      const labels = (await page.evaluate(
        `Chart.getChart(document.querySelector('figure[data-table="split"] canvas')).data.labels`,
      )) as string[]
      assert.match(labels[0]!, label)
      assert.equal(new Set(labels).size, labels.length, period)
    }
  })

  test('nothing moves when the scripts come after the page was painted', async () => {
    for (const look of [DESKTOP, PHONE]) {
      const { page } = await demo.visitor(look)
      await page.addInitScript(`window.shifts = []
        new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map(({ value }) => value)))
          .observe({ type: 'layout-shift', buffered: true })`)
      for (const path of ['/subscriptions?period=12m&project=demo', '/keys?project=demo']) {
        const painted = Promise.withResolvers<void>()
        await page.route('**/assets/*.js', async (route) => {
          await painted.promise
          await route.continue()
        })
        await page.goto(demo.server.adminUrl + path, { waitUntil: 'commit' })
        await until('the page to be painted', () =>
          page.evaluate(`performance.getEntriesByName('first-contentful-paint').length > 0`),
        )
        painted.resolve()
        await page.waitForSelector('html.scripted')
        // Two frames, so that what the scripts changed was drawn.
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
        assert.deepEqual(await page.evaluate('window.shifts'), [], `${look.width} px, ${path}`)
        await page.unroute('**/assets/*.js')
      }
    }
  })

  // The last ones: requests of scripts have the cookie of the first visitor in this browser, and these end all sessions.
  test('a guide, an error and the sign-in load as new documents', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/funnels?from=2001-01-01&to=2001-01-31')
    await page.click('main a[href^="/docs/guides"]')
    await page.waitForURL(/\/docs\/guides\/import/)
    assert.equal(await page.locator('link[href="/assets/dashboard.css"]').count(), 0)
    await open('/revenue?from=2026-01-01&to=2026-01-31')
    await page.click('.period summary')
    await page.fill('.period input[name="from"]', '2026-03-01')
    await page.click('.period form button')
    await page.waitForSelector('header.side ~ .page h1:text("That did not work")')
    await page.goto(demo.server.adminUrl, { waitUntil: 'load' })
    await demo.server.db.query('delete from dashboard_sessions')
    await page.click('.wide nav a:text("Revenue")')
    await page.waitForSelector('body.alone #operator_key')
  })

  test('the link to a table as CSV opens the sign-in if the session has ended, and saves no page as a file', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/funnels?project=demo&period=24m')
    await demo.server.db.query('delete from dashboard_sessions')
    const saved = page.waitForEvent('download').then((file) => file.suggestedFilename())
    await page.click('section:has(#funnels) a:text("CSV")')
    const opened = page.waitForSelector('h1:text("Sign in")').then(() => new URL(page.url()).searchParams.get('to'))
    assert.equal(await Promise.race([saved, opened]), '/funnels?project=demo&period=24m')
  })
})
