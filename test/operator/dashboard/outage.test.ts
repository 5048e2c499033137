// Pages while the database cannot be reached: 503 with a message and a link to try again; they work again once it can.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pages } from '../../../src/operator/dashboard/routes.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { openProxy } from '../../support/proxy.ts'
import { until } from '../../support/time.ts'

const database = await freshDatabase()
const proxy = await openProxy(database.url)
const dashboard = await startDashboard({ DATABASE_URL: proxy.url })
const key = (await dashboard.operator('write')).key
const cookie = await dashboard.signIn(key)
after(async () => {
  await dashboard.stop()
  await proxy.cut()
  await database.drop()
})

const SENTENCE = /<p class="failed" role="alert">The database cannot be reached at the moment: try again\.<\/p>/

test('503 with a message and a link to try again for every page, form and sign-in, which work again afterwards', async () => {
  const { visit, project } = dashboard
  await proxy.cut()
  try {
    for (const path of Object.keys(pages).map((path) => path.replace(/:[a-z_]+/g, 'none'))) {
      const { status, headers, text } = await visit(`${path}?project=${project.id}`, { cookie })
      assert.equal(status, 503, `${path} ${text}`)
      assert.equal(headers.get('retry-after'), '1', path)
      assert.equal(headers.get('cache-control'), 'no-store', path)
      assert.match(text, SENTENCE)
      assert.ok(text.includes(`<a class="button" href="${path}?project=${project.id}">Try again</a>`), path)
    }
    const form = await visit('/settings/rates', {
      cookie,
      form: { owner: 'project', rate_limit: 'default' },
      headers: { referer: `${dashboard.origin}/settings?project=${project.id}` },
    })
    assert.equal(form.status, 503)
    assert.match(form.text, SENTENCE)
    assert.match(form.text, /Check before you send the form again/)
    assert.ok(form.text.includes(`href="/settings?project=${project.id}">Back to the form</a>`))
    const signIn = await visit('/sign-in', { form: { operator_key: key } })
    assert.equal(signIn.status, 503)
    assert.match(signIn.text, SENTENCE)
  } finally {
    await proxy.mend()
  }
  await until('the page to come back', async () => (await visit('/', { cookie })).status === 200)
})

test('a form that was refused leads back to its page, and to no other host', async () => {
  const { visit, origin } = dashboard
  const refused = (referer: string) =>
    visit('/settings/rates', { cookie, form: { owner: 'project', rate_limit: 'fast' }, headers: { referer } })
  const own = await refused(`${origin}/settings?project=p`)
  assert.equal(own.status, 400)
  assert.ok(own.text.includes('<a class="button" href="/settings?project=p">Back to the form</a>'))
  for (const other of ['https://evil.example/settings', 'nonsense', `${origin}//evil.example/`])
    assert.ok((await refused(other)).text.includes('<a class="button" href="/">Back to the form</a>'), other)
})
