// What support and operations look for: a declined charge with its reason, the amount of a refund, a failing endpoint.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startDashboard } from '../../support/dashboard.ts'
import { addRow, insert } from '../../support/data.ts'
import { rowsOf } from './page-numbers.ts'

const [DECLINED, PAID, EVENT, ENDPOINT] = [6, 7, 8, 9].map((n) => `01900000-0000-7000-8000-00000000000${n}`)
const T = '2026-01-02T03:04:05Z'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('write')
const { server, project } = dashboard
const organizationId = project.organizationId
await insert(server.db, project, {
  profiles: [{ id: 'profile', email: 'ada@example.com' }],
  customers: [{ external_id: 'ada', profile_id: 'profile' }],
  orders: [
    { order_id: PAID, external_id: 'ada', amount: '12.345', currency_code: 'KWD', idempotency_key: 'paid' },
    {
      order_id: DECLINED,
      external_id: 'ada',
      status: 'failed',
      failed_message_for_user: 'Your card was declined.',
      idempotency_key: 'declined',
      psp_merchant_id: 'moonrise-eu',
    },
  ],
  refunds: [
    {
      refund_id: EVENT,
      order_id: PAID,
      external_id: 'ada',
      idempotency_key: 'refund',
      amount: '2.5',
      currency_code: 'KWD',
    },
  ],
  events: [
    { id: EVENT, type: 'charge.succeeded', object_id: PAID, profile_id: 'profile', data: { order_id: PAID } },
    { id: ENDPOINT, type: 'profile.updated', object_id: 'profile', profile_id: 'profile', data: { id: 'profile' } },
  ],
})
const names = { project_id: project.id, event_id: EVENT, endpoint_id: ENDPOINT }
const endpoint = { id: ENDPOINT, url: 'https://shop.example/hooks', enabled: true, failing_since: T }
await addRow(server.db, 'webhook_endpoints', { project_id: project.id, ...endpoint, created_at: T, updated_at: T })
const delivery = { status: 'pending', attempts: 1, failures: 1, created_at: T, next_attempt_at: T }
await addRow(server.db, 'webhook_deliveries', { ...names, ...delivery })
const attempt = { number: 1, attempted_at: T, duration_ms: 5, status: 500 }
const earlier = { attempted_at: '2026-01-02T03:04:00Z', url: 'https://shop.example/before' }
await addRow(server.db, 'webhook_attempts', { ...names, ...attempt, ...earlier })
await addRow(server.db, 'webhook_attempts', { ...names, ...attempt, number: 2 })

const see = async (path: string) => {
  const { status, text } = await dashboard.visit(path, { cookie })
  assert.equal(status, 200, text)
  return text
}

test('a declined charge has its message and merchant account in the list; a filter without a match says so', async () => {
  const row = rowsOf(await see('/charges?status=failed'), 'charges')[0]!
  assert.equal(row[2], 'failed Your card was declined.')
  assert.equal(row[5], 'simulator, moonrise-eu')
  const none = await see('/charges?status=cancelled')
  assert.match(none, /No charges match these filters/)
  assert.doesNotMatch(none, /No charges yet/)
})

test('the timeline of a charge has each refund in the currency of the charge, and its next delivery as such', async () => {
  const text = await see(`/charges/${organizationId}/${PAID}`)
  const timeline = /<ol class="timeline">(.*?)<\/ol>/s.exec(text)![1]!
  assert.match(timeline, /Refund started<\/strong>\s*<span>\s*KWD\s2\.500/)
  assert.doesNotMatch(timeline, /USD/)
  assert.match(timeline, /Next delivery attempt<\/strong>\s*<a href="\/webhooks\/events\/[^>]*>charge\.succeeded</)
})

test('an endpoint that fails is shown as failing and leads to its deliveries', async () => {
  const text = await see('/webhooks')
  assert.match(rowsOf(text, 'endpoints')[0]![1]!, /^failing since 2 Jan 2026/)
  const [, path] = /href="(\/webhooks\?[^"]*endpoint=[^"]*)"/.exec(text)!
  const own = await see(path!.replaceAll('&amp;', '&'))
  assert.match(own, /Only deliveries to https:\/\/shop\.example\/hooks/)
  assert.equal(rowsOf(own, 'deliveries').length, 1)
  const other = await see('/webhooks?endpoint=other')
  assert.match(other, /No deliveries match/)
})

test('an event names the address of each attempt and leads to its charge or person', async () => {
  const text = await see(`/webhooks/events/${EVENT}`)
  assert.deepEqual(
    rowsOf(text, 'attempts').map((row) => row.slice(0, 3)),
    [
      ['2 Jan 2026, 03:04:05', 'https://shop.example/hooks', 'HTTP 500'],
      ['2 Jan 2026, 03:04:00', 'https://shop.example/before', 'HTTP 500'],
    ],
  )
  assert.ok(text.includes(`href="/charges/${organizationId}/${PAID}`))
  assert.ok((await see(`/webhooks/events/${ENDPOINT}`)).includes('href="/people/profile'))
})
