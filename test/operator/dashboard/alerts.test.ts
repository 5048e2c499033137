// The page Alerts: rules, destinations and hours are set by its forms, and a message shows what became of it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { alertsOnce } from '../../../src/operator/alerts/run.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { startReceiver } from '../../support/receiver.ts'

const receiver = await startReceiver(() => 500)
const dashboard = await startDashboard({ WEBHOOK_ALLOW_PRIVATE: 'true' })
const cookie = await dashboard.signInAs('write')
const query = `?project=${dashboard.project.id}`
after(async () => {
  await dashboard.stop()
  await receiver.close()
})

const see = async () => (await dashboard.visit(`/alerts${query}`, { cookie })).text
const submit = (path: string, form: Record<string, string>) =>
  dashboard.visit(`/alerts${path}${query}`, { cookie, form })

test('what the forms set is shown, and a digest that is sent now with its error; then all of it is removed', async () => {
  const rule = { alert_id: 'drop', metric: 'mrr', condition: 'change', threshold: '−12.5', from_hour: '' }
  const chat = { destination_id: 'team', kind: 'slack', address: `${receiver.url}/services/secret-part`, receives: '' }
  const hours = { digest_hour: '7', quiet_from: '22', quiet_to: '6' }
  for (const [path, form] of [
    ['/new', rule],
    ['/destinations/new', chat],
    ['/hours', hours],
    ['/send', {}],
  ] as const) {
    const response = await submit(path, form)
    assert.equal(response.status, 303, response.text)
  }
  await alertsOnce(dashboard.server.app)
  const page = await see()
  for (const shown of [
    'mrr: a drop of 12.5% in a week',
    '07:00',
    '22:00 to 06:00',
    '…part',
    'Status 500.',
    'sent by an operator',
  ])
    assert.ok(page.includes(shown), shown)
  assert.doesNotMatch(page, /secret-part/)
  const wrong = await submit('/hours', { digest_hour: 'seven', quiet_from: '', quiet_to: '' })
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /digest_hour must be/)

  // The digest can be looked at, which sends nothing.
  assert.ok(page.includes(`/alerts/digest${query}`))
  const arrived = receiver.arrivals.length
  const { status, text } = await dashboard.visit(`/alerts/digest${query}`, { cookie })
  assert.equal(status, 200)
  assert.match(text, /<h2>[^<]*\$0\.00 revenue on \d{1,2} [A-Z][a-z]{2} \d{4}<\/h2>[\s\S]*Sessions: 0[\s\S]*Doctor: /)
  await alertsOnce(dashboard.server.app)
  assert.equal(receiver.arrivals.length, arrived)

  const rate = { alert_id: 'rate', metric: 'conversion_rate', condition: 'below', threshold: '0.0075', from_hour: '' }
  assert.equal((await submit('/new', rate)).status, 303)
  assert.match(await see(), /conversion rate: below 0\.75%/)
  assert.equal((await submit('/rate/remove', {})).status, 303)

  const noDestination = /No destination receives alerts/
  assert.doesNotMatch(await see(), noDestination)
  assert.equal((await submit('/destinations/new', { ...chat, receives: 'digest' })).status, 303)
  assert.match(await see(), noDestination)

  assert.equal((await submit('/drop/remove', {})).status, 303)
  assert.equal((await submit('/destinations/team/remove', {})).status, 303)
  const after = await see()
  for (const shown of ['No rules yet', 'No destinations yet', 'No messages yet'])
    assert.ok(after.includes(shown), shown)
})
