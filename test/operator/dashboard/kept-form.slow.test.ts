// A form that is sent after its session has ended: what was typed into it is there again after the sign-in, and secrets are not.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeOwnLink } from '../../../src/operator/dashboard/sessions.ts'
import { DESKTOP, setUpDemoBrowser } from './demo-browser.ts'

describe('a form of an ended session', () => {
  const demo = setUpDemoBrowser()
  const endSessions = () => demo.server.db.query('delete from dashboard_sessions')

  /** Follows the link to the sign-in page, and signs in there with another link, as with a key. */
  async function signInAgain(page: Awaited<ReturnType<typeof demo.visitor>>['page']) {
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.waitForURL(/sign-in\?to=/)
    const to = new URL(page.url()).searchParams.get('to')!
    const token = await demo.server.db.tx((query) => makeOwnLink(query, 'browser'))
    await page.goto(`${demo.server.adminUrl}/sign-in?token=${token}`)
    return to
  }

  test('is filled again after the sign-in, once, and has lost its secrets', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/merchant-accounts')
    const form = page.locator('details:has(> summary:text-is("Connect an account…"))')
    await form.locator('summary').click()
    await form.getByLabel('Provider').selectOption('primer')
    await form.getByLabel('Account ID').fill('shop "1" <b>')
    await form.getByLabel('Secret key').fill('sk_test_typed')
    await endSessions()
    await form.getByRole('button').click()
    await page.waitForSelector('text=Your session has ended, and nothing was done.')
    await page.waitForSelector('text=This tab keeps what you typed')
    const stored = await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))
    assert.ok(stored.includes('shop') && !stored.includes('sk_test_typed'), stored)
    const to = await signInAgain(page)
    // The page after a link leads to Today; the sign-in with a key leads to the page of the form.
    await page.goto(demo.server.adminUrl + to)
    await page.waitForSelector('text=This is what you typed. It was not sent. Type secrets again.')
    assert.equal(await form.getByLabel('Account ID').inputValue(), 'shop "1" <b>')
    assert.equal(await form.getByLabel('Provider').inputValue(), 'primer')
    assert.equal(await form.getByLabel('Secret key').inputValue(), '')
    await open(to)
    assert.equal(await form.getByLabel('Account ID').inputValue(), '')
  })

  test('is forgotten once it was sent, and by a sign-in that goes on to another page', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/settings')
    const form = page.locator('details:has(> summary:text-is("Change time zone and currency…"))')
    await form.locator('summary').click()
    await form.getByLabel('Time zone').fill('Mars/Phobos')
    await form.getByRole('button').click()
    await page.waitForSelector('text=“Time zone” must be a name')
    assert.equal(await page.evaluate(() => sessionStorage.getItem('tundish-form')), null)
    await endSessions()
    await form.getByRole('button').click()
    await page.waitForSelector('text=This tab keeps what you typed')
    await signInAgain(page)
    await open('/revenue')
    await open('/settings')
    assert.notEqual(await form.getByLabel('Time zone').inputValue(), 'Mars/Phobos')
  })

  test('has no secret address of a chat service', async () => {
    const { page, open } = await demo.visitor(DESKTOP)
    await open('/alerts')
    const form = page.locator('details:has(> summary:text-is("Add a destination…"))')
    await form.locator('summary').click()
    await form.getByLabel('Name').fill('team')
    await form.getByLabel('Address').fill('https://chat.example/T0/secret')
    await endSessions()
    await form.getByRole('button').click()
    await page.waitForSelector('text=This tab keeps what you typed')
    const stored = await page.evaluate(() => JSON.stringify({ ...sessionStorage }))
    assert.ok(stored.includes('team') && !stored.includes('chat.example'), stored)
  })
})
