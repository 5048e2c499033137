// Alerts: each message once for a rule and day, whatever processes, clocks, receivers and quiet hours do.
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { webhookSecret } from '../../../src/core/tenants/key-text.ts'
import { rebuildFigures } from '../../../src/data/figures/follow.ts'
import { addDays } from '../../../src/lib/days.ts'
import { sendMail } from '../../../src/operator/alerts/mail.ts'
import { alertsOnce } from '../../../src/operator/alerts/run.ts'
import { tundish } from '../../support/cli.ts'
import { insert } from '../../support/data.ts'
import { startReceiver } from '../../support/receiver.ts'
import { ok, type Project, startTestServer } from '../../support/server.ts'
import { setDatabaseClock, until } from '../../support/time.ts'
import { startMailServer } from './mail-server.ts'

let status = 204
let project: Project
/** The day of the test, far from the clock of this machine. */
const DAY = '2027-03-10'
const FROM = { name: '', address: 'tundish@example.com' }
const SLACK = 'services/T0/B0/verysecretpart'

const mail = await startMailServer()
const receiver = await startReceiver(() => status)
const server = await startTestServer(
  {
    WEBHOOK_ALLOW_PRIVATE: 'true',
    SMTP_URL: mail.url,
    SMTP_FROM: 'Acme; EU: alerts <tundish@example.com>',
    DASHBOARD_URL: 'https://tundish.example.com',
  },
  { worker: false },
)
after(async () => {
  await server.stop()
  await receiver.close()
  await mail.close()
})

const setClock = (time: string, day = DAY) =>
  setDatabaseClock(server.env.DATABASE_URL!, `${Date.parse(`${day}T${time}Z`) - Date.now()} milliseconds`)

/** Two processes at the same time. */
const twice = () => Promise.all([alertsOnce(server.app), alertsOnce(server.app)])
/** Another check without waiting for the minute between two. */
async function again() {
  await server.db.query(`update alert_settings set next_check_at = db_clock()`)
  await twice()
}

const put = (path: string, body: object) => ok(server.admin(`/projects/${project.id}/${path}`, { method: 'PUT', body }))
const list = async (path: string) => (await server.admin(`/projects/${project.id}/${path}`)).body.data
const rows = (sql: string) => server.db.query(sql, [project.id])
const arrived = (path: string) => receiver.arrivals.filter((one) => one.path === path)

/** A project with sessions of some days, its figures, and a destination of each kind. */
beforeEach(async () => {
  await setClock('05:00:00')
  status = 204
  mail.mails.length = 0
  receiver.arrivals.length = 0
  project = await server.project()
  const sessions = [
    ...Array.from({ length: 3 }, () => addDays(DAY, -1)),
    ...Array.from({ length: 10 }, () => addDays(DAY, -8)),
  ].map((day, n) => ({ id: `s${n}`, created_at: `${day}T10:00:00Z`, updated_at: `${day}T10:00:00Z` }))
  await insert(server.db, project, { profiles: [{ id: 'profile' }], sessions })
  await rebuildFigures(server.db, project.id)
  await put('alert-destinations/hook', { kind: 'webhook', address: `${receiver.url}/hook` })
  await put('alert-destinations/chat', { kind: 'slack', address: `${receiver.url}/${SLACK}` })
  await put('alert-destinations/owner', { kind: 'email', address: 'owner@example.com', receives: ['alert'] })
})

const low = { metric: 'sessions', condition: 'below', threshold: 5 }

test('a rule that is met sends one message to each destination, once for the day, also when the clock is set back', async () => {
  await put('alerts/low', low)
  await put('alerts/fall', { metric: 'sessions', condition: 'change', threshold: -50 })
  await put('alerts/high', { metric: 'sessions', condition: 'above', threshold: 3 })
  await put('alerts/rise', { metric: 'sessions', condition: 'change', threshold: 10 })
  await twice()
  await again()
  const verified = arrived('/hook').map(({ headers, body }) => {
    const [id, seconds] = [headers['webhook-id'] as string, Number(headers['webhook-timestamp'])]
    // The library compares the time of `verify` with the clock of this machine.
    const signed = new Webhook(webhookSecret(project.key)).sign(id, new Date(seconds * 1000), body)
    assert.equal(headers['webhook-signature'], signed)
    return JSON.parse(body)
  })
  const hooks = verified as { type: string; day: string; title: string; url: string; data: Record<string, unknown> }[]
  assert.deepEqual(hooks.map(({ data }) => data.alert_id).sort(), ['fall', 'low'])
  const [fall] = hooks.filter(({ data }) => data.alert_id === 'fall')
  assert.deepEqual([fall!.type, fall!.day, fall!.data.value, fall!.data.before], ['alert.rule', '2027-03-09', 3, 10])
  assert.match(fall!.title, /: sessions were 3 on 9 Mar 2027, 70% less than a week earlier$/)
  assert.equal(fall!.url, `https://tundish.example.com/funnels?project=${project.id}&from=2027-03-09&to=2027-03-09`)
  const texts = arrived(`/${SLACK}`).map(({ body }) => (JSON.parse(body) as { text: string }).text)
  assert.equal(texts.length, 2)
  assert.ok(texts.some((text) => /sessions were 3 on 9 Mar 2027, below 5\*\nSessions that began\./.test(text)))
  assert.deepEqual(
    mail.mails.map(({ to }) => to),
    ['owner@example.com', 'owner@example.com'],
  )
  assert.match(mail.mails[0]!.data, /^From: "Acme; EU: alerts" <tundish@example\.com>$/m)
  const [rule] = (await list('alerts')).filter(({ id }: { id: string }) => id === 'low')
  assert.deepEqual([rule.checked_day, rule.last_value, rule.problem], ['2027-03-09', 3, null])
  const [chat] = (await list('alert-destinations')).filter(({ id }: { id: string }) => id === 'chat')
  assert.ok(chat.last_sent_at)
  assert.doesNotMatch(JSON.stringify([chat, await list('alert-messages'), server.logLines()]), /verysecret/)

  await setClock('05:00:00', addDays(DAY, -1))
  await again()
  await put('alerts/low', { ...low, threshold: 4 })
  await setClock('05:00:00')
  await again()
  assert.equal(receiver.arrivals.length, 4)
})

test('a clock that was far ahead does not end the alerts and digests of the days before it', async () => {
  await put('alerts/low', low)
  await put('alert-settings', { digest_hour: 6 })
  const ahead = addDays(DAY, 40)
  await setClock('06:01:00', ahead)
  await rebuildFigures(server.db, project.id)
  await again()
  await setClock('06:01:00')
  await again()
  await again()
  const days = ['alert.rule', 'alert.digest'].map((type) =>
    arrived('/hook')
      .map(({ body }) => JSON.parse(body))
      .filter((one) => one.type === type && one.project_id === project.id)
      .map(({ day }) => day),
  )
  const both = [addDays(ahead, -1), addDays(DAY, -1)]
  assert.deepEqual(days, [both, both])
})

test('a threshold is written with all of its digits', async () => {
  await put('alerts/rate', { metric: 'conversion_rate', condition: 'below', threshold: 0.0004 })
  await twice()
  const { title, lines } = JSON.parse(arrived('/hook')[0]!.body)
  assert.match(title, /: conversion rate was 0% on 9 Mar 2027, below 0\.04%$/)
  assert.equal(lines.at(-1), 'Rule rate: below 0.04%.')
})

test('amounts without an exchange rate are named in messages about the MRR, and counted in those about payments', async () => {
  const created_at = `${addDays(DAY, -1)}T10:00:00Z`
  await insert(server.db, project, {
    customers: [{ external_id: 'ada', profile_id: 'profile' }],
    products: [{ id: 'product' }],
    subscriptions: ['USD', 'JPY'].map((currency) => ({ id: currency, currency, price: 1500, created_at })),
    transactions: ['USD', 'JPY'].map((id) => ({ id, currency: id, price: 1500, subscription_id: id, created_at })),
  })
  await server.db.query(PAYMENT, [project.organizationId, created_at])
  await rebuildFigures(server.db, project.id)
  await put('alerts/mrr', { metric: 'mrr', condition: 'above', threshold: 1 })
  await put('alerts/paid', { metric: 'paid_amount', condition: 'below', threshold: 1 })
  await put('alert-settings', { digest_hour: 6 })
  await setClock('06:01:00')
  await twice()
  const lines = Object.fromEntries(
    arrived('/hook').map(({ body }) => {
      const { type, data, lines } = JSON.parse(body)
      return [data.alert_id ?? type, lines as string[]]
    }),
  )
  const left = 'The MRR is without ¥1,500: no exchange rate.'
  assert.ok(lines.mrr!.includes(left), lines.mrr!.join('\n'))
  assert.ok(lines['alert.digest']!.includes(left), lines['alert.digest']!.join('\n'))
  assert.ok(lines.paid!.includes('1 amount has no exchange rate and is not in it.'), lines.paid!.join('\n'))
})

const PAYMENT = `
  insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
    currency_code, status, psp, psp_transaction_type)
  values ($1, 'ada', true, $2, gen_random_uuid(), gen_random_uuid(), $2, 1500, 'JPY', 'succeeded', 'simulator', 'sale')`

test('a rule without a destination has sent no message, and the doctor says so', async () => {
  const warnings = async () => {
    const { stdout } = await tundish(['doctor', '--json'], server.env)
    const { findings } = JSON.parse(stdout) as { findings: { check: string; project_id?: string; message: string }[] }
    return findings
      .filter((one) => one.check === 'alerts' && one.project_id === project.id)
      .map(({ message }) => message)
  }
  await put('alerts/low', low)
  await put('alert-destinations/owner', { kind: 'email', address: 'owner@example.com', receives: ['digest'] })
  for (const id of ['hook', 'chat'])
    await server.admin(`/projects/${project.id}/alert-destinations/${id}`, { method: 'DELETE' })
  await twice()
  const [rule] = await list('alerts')
  assert.deepEqual([rule.checked_day, rule.last_value, rule.fired_at], ['2027-03-09', 3, null])
  assert.deepEqual(await warnings(), [
    `The alerts of project ${project.id} are sent to nobody: no destination receives them.`,
  ])
  await put('alert-destinations/owner', { kind: 'email', address: 'owner@example.com' })
  assert.deepEqual(await warnings(), [])
})

test('a digest is sent once at its hour, and not at once when it is set later', async () => {
  await put('alert-settings', { digest_hour: 5 })
  await twice()
  assert.equal(receiver.arrivals.length, 0)
  await put('alert-settings', { digest_hour: 6 })
  await setClock('06:01:00')
  await again()
  await again()
  assert.deepEqual(receiver.arrivals.map(({ path }) => path).sort(), ['/hook', `/${SLACK}`])
  const { lines, type } = JSON.parse(arrived('/hook')[0]!.body)
  assert.equal(type, 'alert.digest')
  assert.ok(lines.includes('Sessions: 3 (day before 0, a week earlier 10)'), lines.join('\n'))
  assert.ok(lines.some((line: string) => line.startsWith('Doctor: ')))
  assert.equal(mail.mails.length, 0)
})

test('hours are those of the time zone of the project', async () => {
  await rows(`update projects set time_zone = 'America/New_York' where id = $1`)
  await put('alert-settings', { digest_hour: 1 })
  await setClock('05:59:00')
  await again()
  assert.equal(receiver.arrivals.length, 0)
  await setClock('06:01:00')
  await again()
  assert.equal(JSON.parse(arrived('/hook')[0]!.body).day, addDays(DAY, -1))
})

test('quiet hours hold messages back until their end; one that is sent now is not held', async () => {
  await put('alert-settings', { quiet_from: 22, quiet_to: 8 })
  await put('alerts/low', low)
  await twice()
  assert.equal(receiver.arrivals.length, 0)
  await ok(
    server.admin(`/projects/${project.id}/alert-messages`, { method: 'POST', body: { destination_id: 'owner' } }),
  )
  await again()
  assert.deepEqual([mail.mails.length, receiver.arrivals.length], [1, 0])
  assert.match(mail.mails[0]!.data, /Sent by an operator\./)
  await setClock('08:00:01')
  await again()
  await again()
  assert.deepEqual([mail.mails.length, receiver.arrivals.length], [2, 2])
})

test('a receiver that fails is tried again later, each failure shown, and given up after seven attempts', async () => {
  status = 500
  mail.state.refuses = true
  await put('alerts/low', low)
  await twice()
  await again()
  assert.equal(receiver.arrivals.length, 2)
  const errors = (await list('alert-destinations')).map((one: { id: string; last_error: string }) => [
    one.id,
    one.last_error,
  ])
  assert.deepEqual(errors.sort(), [
    ['chat', 'Status 500.'],
    ['hook', 'Status 500.'],
    ['owner', 'The mail server rejects the address (451).'],
  ])
  for (let n = 0; n < 8; n++) {
    await rows(`update alert_messages set next_attempt_at = db_clock() where project_id = $1 and status = 'pending'`)
    await again()
  }
  assert.equal(arrived('/hook').length, 7)
  const messages = await list('alert-messages')
  assert.deepEqual(new Set(messages.map((one: { status: string }) => one.status)), new Set(['failed']))
  mail.state.refuses = false
  assert.doesNotMatch(JSON.stringify([messages, server.logLines()]), /mail-password|someone@/)
})

test('another address of a destination is sent at once what waits for its next attempt', async () => {
  status = 500
  await put('alerts/low', low)
  await twice()
  assert.equal(arrived('/hook').length, 1)
  await rows(
    `update alert_messages set next_attempt_at = db_clock() + interval '4 hours' where project_id = $1 and status = 'pending'`,
  )
  status = 204
  await put('alert-destinations/hook', { kind: 'webhook', address: `${receiver.url}/hook`, receives: ['alert'] })
  await twice()
  assert.equal(receiver.arrivals.length, 2)
  await put('alert-destinations/hook', { kind: 'webhook', address: `${receiver.url}/corrected` })
  await put('alert-destinations/chat', { kind: 'slack', address: `${receiver.url}/services/T0/B0/new` })
  await twice()
  const at = ['/corrected', '/services/T0/B0/new'].map((path) => arrived(path).length)
  assert.deepEqual([receiver.arrivals.length, at], [4, [1, 1]])
})

test('an address that is replaced during an attempt: its outcome is ignored, and the present address is sent the message', async () => {
  const begun = Promise.withResolvers<() => void>()
  const old = await startReceiver((_, response) => {
    begun.resolve(() => response.writeHead(500).end())
    return undefined
  })
  await put('alert-destinations/hook', { kind: 'webhook', address: old.url })
  await put('alerts/low', low)
  const attempts = twice()
  const fail = await begun.promise
  await put('alert-destinations/hook', { kind: 'webhook', address: `${receiver.url}/hook` })
  fail()
  await attempts
  await again()
  await old.close()
  assert.deepEqual([old.arrivals.length, arrived('/hook').length], [1, 1])
  const [hook] = await rows(
    `select last_error, failing_since from alert_destinations where project_id = $1 and id = 'hook'`,
  )
  assert.deepEqual(hook, { last_error: null, failing_since: null })
})

test('figures that are not complete are reported once, and the rules are decided when they are', async () => {
  await put('alerts/low', low)
  await rows(`insert into figure_marks (project_id, family, day) values ($1, 'visits', '2027-03-09')`)
  await rows(`update figure_progress set horizon = '2027-03-09T20:15:00Z' where project_id = $1`)
  await twice()
  assert.equal(receiver.arrivals.length, 0)
  await setClock('06:00:01')
  await again()
  await again()
  assert.equal(arrived('/hook').length, 1)
  const { type, lines } = JSON.parse(arrived('/hook')[0]!.body)
  assert.deepEqual([type, lines[0]], ['alert.stale', 'Everything is counted until 9 Mar 2027, 20:15 UTC only.'])
  await rebuildFigures(server.db, project.id)
  await again()
  assert.deepEqual(
    arrived('/hook').map(({ body }) => JSON.parse(body).type),
    ['alert.stale', 'alert.rule'],
  )
})

test('a rule of today is decided from its hour on; one on a metric that is gone says so; a project that is leaving sends nothing', async () => {
  await put('alerts/now', { metric: 'sessions', condition: 'below', threshold: 1, today: true, from_hour: 12 })
  await put('alerts/gone', low)
  await rows(`update alert_rules set metric = 'visits' where project_id = $1 and id = 'gone'`)
  await twice()
  assert.equal(receiver.arrivals.length, 0)
  const [gone] = (await list('alerts')).filter(({ id }: { id: string }) => id === 'gone')
  assert.equal(gone.problem, 'There is no metric "visits".')
  await setClock('12:30:00')
  await server.db.query(`insert into instance (name, value) values ($1, '{"to": "b", "keys": []}')`, [
    `move ${project.organizationId}`,
  ])
  await again()
  assert.equal(receiver.arrivals.length, 0)
  await server.db.query('delete from instance where name = $1', [`move ${project.organizationId}`])
  await again()
  await again()
  assert.deepEqual(
    arrived('/hook').map(({ body }) => JSON.parse(body).title.split(': ')[1]),
    ['sessions were 0 on 10 Mar 2027 until 12:00, below 1'],
  )
})

const SIMPLE = { id: 'x', title: '', lines: [], url: undefined }

test('a mail server that is down, or whose connection cannot be encrypted, is an outcome', async () => {
  const sent = (url: string) => sendMail({ url, from: FROM }, 'owner@example.com', SIMPLE)
  const down = await sent('smtp://127.0.0.1:1')
  assert.deepEqual([down.status, down.error], [undefined, 'The mail server cannot be reached.'])
  const plain = await sent(mail.url.replace('smtp:', 'smtps:'))
  assert.match(plain.error!, /^The connection to the mail server could not be encrypted \(ERR_SSL_\w+\)\.$/)
})

test('a mail server that examines a mail for more than ten seconds has taken it, so that it is not sent again', async () => {
  mail.state.examinesMs = 11_000
  try {
    const sent = await sendMail({ url: mail.url, from: FROM }, 'owner@example.com', SIMPLE)
    assert.deepEqual([sent.status, sent.error, mail.mails.length], [250, undefined, 1])
  } finally {
    mail.state.examinesMs = 0
  }
})

test('a mail server that wants a password, or takes no connections, is not called one that rejects the address', async () => {
  const sent = async () => (await sendMail({ url: mail.url, from: FROM }, 'owner@example.com', SIMPLE)).error
  try {
    mail.state.asksForPassword = true
    assert.equal(await sent(), 'The mail server wants a user name and a password in SMTP_URL (530).')
    Object.assign(mail.state, { asksForPassword: false, wantsTls: true })
    assert.equal(await sent(), 'The connection to the mail server could not be encrypted (530).')
    mail.state.isBusy = true
    assert.equal(await sent(), 'The mail server refuses the connection (421).')
  } finally {
    Object.assign(mail.state, { asksForPassword: false, wantsTls: false, isBusy: false })
  }
})

test('a mail server that never ends its reply is left at the deadline, and when the process stops', {
  timeout: 60_000,
}, async () => {
  mail.state.stalls = true
  try {
    const settings = { url: mail.url, from: FROM }
    const late = await sendMail(settings, 'owner@example.com', SIMPLE, { deadlineMs: 500 })
    assert.deepEqual([late.status, late.error], [undefined, 'The mail server did not respond in time.'])
    await put('alerts/low', low)
    const stalled = Promise.withResolvers<void>()
    mail.state.onStall = stalled.resolve
    const stop = new AbortController()
    const stopped = alertsOnce(server.app, stop.signal)
    const pending = async () =>
      (await list('alert-messages')).filter((one: { status: string }) => one.status === 'pending')
    await stalled.promise
    await until('the other messages to be sent', async () => (await pending()).length === 1)
    stop.abort()
    await stopped
    const [message] = await pending()
    assert.deepEqual([message.destination_id, message.attempts, message.error], ['owner', 0, null])
  } finally {
    Object.assign(mail.state, { stalls: false, onStall: undefined })
  }
  await twice()
  assert.deepEqual(
    mail.mails.map(({ to }) => to),
    ['owner@example.com'],
  )
})

test('no part of an address is taken for a comment', async () => {
  await sendMail({ url: mail.url, from: FROM }, 'a(b)c@example.com', SIMPLE)
  assert.deepEqual(
    mail.mails.map(({ to }) => to),
    ['"a(b)c"@example.com'],
  )
})

test('400 for a rule that cannot be decided, and for an address that cannot be reached', async () => {
  for (const [path, body, sentence] of [
    ['alerts/a', { ...low, metric: 'gross' }, /^metric must be one of .*, got "gross"/],
    ['alerts/a', { ...low, metric: 'sessions,people' }, /metric must be one metric/],
    ['alerts/a', { ...low, threshold: 'much' }, /threshold must be a decimal number/],
    ['alerts/a', { ...low, condition: 'change', threshold: 0 }, /threshold must not be 0/],
    ['alerts/a', { ...low, metric: 'refund_rate', threshold: 7.3 }, /from 0 to 1, .* got 7\.3: 7\.3% is 0\.073\./],
    ['alerts/a', { ...low, metric: 'refund_rate', threshold: '-0.1' }, /because refund_rate is a rate, got -0\.1\./],
    ['alerts/a', { ...low, today: true }, /from_hour is required/],
    ['alerts/a', { ...low, from_hour: 3 }, /from_hour needs today/],
    ['alerts/a', { ...low, product: 'x', source: 'y' }, /Only one filter/],
    ['alerts/%20', low, /alert_id must be 1 to 64 letters/],
    ['alert-destinations/d', { kind: 'slack', address: 'ftp://x' }, /address must be a URL/],
    ['alert-destinations/d', { kind: 'email', address: 'a@b, c@d' }, /address must be one e-mail address/],
    ['alert-settings', { quiet_from: 3 }, /must be given together/],
    ['alert-settings', { quiet_from: 3, quiet_to: 3 }, /must differ/],
  ] as const) {
    const response = await server.admin(`/projects/${project.id}/${path}`, { method: 'PUT', body })
    assert.equal(response.status, 400, `${path} ${JSON.stringify(body)}: ${response.text}`)
    assert.match(response.body.detail ?? response.body.message ?? response.text, sentence)
  }
  assert.deepEqual(await list('alerts'), [])
})
