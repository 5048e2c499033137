// What a program gets from the JavaScript client when a setting, a clock, a header or a webhook is not as expected.
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { Tundish, type TundishOptions, WebhookVerificationError, webhooks } from '../../clients/js/src/index.ts'

const url = 'http://127.0.0.1:9'

/** A client that gets these responses, one after the other. */
function clientOf(...responses: Response[]): { tundish: Tundish; calls: () => number } {
  let calls = 0
  const fetch = async () =>
    responses[calls++] ?? Response.json({ id: 'ada', checkout_status: 'succeeded', rejects: [] })
  const ingest = { onError: () => {} }
  const tundish = new Tundish({ url, projectKey: 'key', organization: { id: 'acme', key: 'key' }, ingest, fetch })
  return { tundish, calls: () => calls }
}

/** What the first try of a call throws. */
const refusalOf = (headers: Record<string, string>) =>
  new Tundish({
    url,
    projectKey: 'key',
    retries: 0,
    fetch: async () => new Response('', { status: 429, headers }),
  }).profiles
    .get('ada')
    .catch((error) => error)

test('Retry-After as seconds, and as a date by the clock of the server', async () => {
  const date = 'Fri, 31 Jan 2020 09:00:00 GMT'
  const cases: [string, number | undefined][] = [
    ['7', 7000],
    ['Fri, 31 Jan 2020 09:00:30 GMT', 30_000],
    ['Fri, 31 Jan 2020 08:00:00 GMT', undefined],
    ['soon', undefined],
  ]
  for (const [given, ms] of cases)
    assert.equal((await refusalOf({ date, 'retry-after': given })).retryAfterMs, ms, given)
  assert.equal((await refusalOf({ date })).retryAfterMs, undefined)
})

test('a Retry-After of years is no wait of a millisecond', async () => {
  const { tundish, calls } = clientOf(new Response('', { status: 503, headers: { 'retry-after': '99999999' } }))
  tundish.identify({ id: 'ada' })
  await assert.rejects(tundish.flush({ timeoutMs: 500 }), /not sent within 500 ms/)
  assert.equal(calls(), 1)
  await tundish.close()
})

test('a client that closes tries at once, however long it was to wait', async () => {
  const { tundish, calls } = clientOf(new Response('', { status: 503, headers: { 'retry-after': '3600' } }))
  tundish.identify({ id: 'ada' })
  await assert.rejects(tundish.flush({ timeoutMs: 100 }), /not sent within 100 ms/)
  assert.deepEqual([await tundish.close(), calls()], [[], 2])
})

test('a clock that is set forward does not end the wait for a charge', async () => {
  const { tundish, calls } = clientOf(Response.json({ checkout_status: 'processing' }))
  const purchase = { externalId: 'ada', amount: '1', currencyCode: 'USD', idempotencyKey: 'one' }
  const now = Date.now()
  const clock = mock.method(Date, 'now', () => now + calls() * 86_400_000)
  try {
    assert.equal((await tundish.billing.chargeUntilSettled(purchase)).checkout_status, 'succeeded')
  } finally {
    clock.mock.restore()
  }
})

test('changes of a project that was created anew begin with a void of all, also within a walk that is resumed', async () => {
  const sent = (created: string, ...lines: object[]) =>
    new Response(lines.map((line) => `${JSON.stringify(line)}\n`).join(''), {
      headers: { 'x-project-created-at': created },
    })
  const record = { record: 'profile', data: { id: 'ada' } }
  const [horizon, cursor] = ['2026-02-03T00:00:00.000000Z', '3.x']
  const [former, later] = ['2026-01-01T00:00:00.000000Z', '2026-02-02T00:00:00.000000Z']
  const voidFrom = '0001-01-01T00:00:00.000000Z'
  const item = { list: 'profiles', item: record.data }
  const end = { horizon, projectCreatedAt: later }
  const cases = [
    { given: later, responses: [sent(later, record, { cursor }, { horizon })], expected: [item, end] },
    { given: undefined, responses: [sent(later, record, { cursor }, { horizon })], expected: [item, end] },
    {
      given: former,
      responses: [sent(later), sent(later, record, { cursor }, { horizon })],
      expected: [{ voidFrom }, item, end],
    },
    {
      given: former,
      responses: [sent(former, record, { cursor }), sent(later), sent(later, record, { cursor }, { horizon })],
      expected: [item, { voidFrom }, item, end],
    },
  ]
  for (const { given, responses, expected } of cases) {
    const { tundish, calls } = clientOf(...responses)
    const got: unknown[] = []
    for await (const change of tundish.changes({ since: former, projectCreatedAt: given })) got.push(change)
    assert.deepEqual(got, expected)
    assert.equal(calls(), responses.length)
  }
})

test('a response that is not of Tundish is no page: lists end with an error that says so, and changes go on behind the last page', async () => {
  const foreign = () => new Response('{"status":"ok"}\n')
  const told = { name: 'TundishConnectionError', message: 'The response is not from Tundish: check the url.' }
  await assert.rejects(clientOf(foreign()).tundish.profiles.list().total(), told)
  const record = { record: 'profile', data: { id: 'ada' } }
  const lines = [record, { cursor: '3.x' }].map((line) => `${JSON.stringify(line)}\n`)
  const { value } = await clientOf(foreign(), new Response(lines.join('')))
    .tundish.changePages()
    .next()
  assert.equal((value as { cursor: string }).cursor, '3.x')
})

test('values that JSON would turn into null, or into nothing, are refused', async () => {
  const { tundish, calls } = clientOf()
  const cases: [unknown, RegExp][] = [
    [{ record: 'session', data: { id: 's', funnel_version: Number.NaN } }, /^TypeError: .* funnel_version is NaN, /],
    [{ record: 'profile', data: { id: 'p', n: [Number.POSITIVE_INFINITY] } }, /^TypeError: .* 0 is Infinity, /],
    [
      { record: 'profile', data: { id: 'p', created_at: new Date('x') } },
      /^TypeError: .* created_at is Invalid Date, /,
    ],
    [undefined, /^TypeError: A record must be an object/],
    [
      { record: 'session', data: { id: 's', query_params: new URLSearchParams('a=b') } },
      /^TypeError: .* query_params is URLSearchParams, /,
    ],
    [{ record: 'profile', data: { id: 'p', n: { m: new Map([[1, 2]]) } } }, /^TypeError: .* m is Map, /],
    [new Map([['record', 'profile']]), /^TypeError: What was given is Map, /],
  ]
  for (const [record, error] of cases) assert.throws(() => tundish.ingest(record as never), error)
  await tundish.flush()
  const purchase = { externalId: 'ada', amount: '1', currencyCode: 'USD', idempotencyKey: 'one' }
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  for (const value of [Number.NaN, new Map(), 1n])
    await assert.rejects(tundish.billing.charge({ ...purchase, clientMetadata: { value } }), TypeError)
  // A call that was never made does not keep the program running.
  assert.deepEqual([calls(), timers()], [0, before])
})

test('a clear error without an address, and in a browser', () => {
  for (const given of [undefined, '', 'localhost:8080'])
    assert.throws(
      () => new Tundish({ url: given } as TundishOptions),
      /^TypeError: Give the client the url of the server, /,
    )
  Object.assign(globalThis, { document: {} })
  try {
    assert.throws(() => new Tundish({ url, projectKey: 'key' }), /^Error: A secret key must not reach a browser: /)
  } finally {
    Reflect.deleteProperty(globalThis, 'document')
  }
})

test('a key that was shortened or has a line break within is refused, and one with a line break at its end is sent', () => {
  const key = /^TypeError: projectKey has a character that no key has: /
  for (const projectKey of ['secret_…', 'secret_a\nb', 'secret a'])
    assert.throws(() => new Tundish({ url, projectKey }), key)
  const organization = { id: 'acme', key: 'secret_…' }
  assert.throws(() => new Tundish({ url, organization }), /^TypeError: organization\.key has a character/)
  assert.ok(new Tundish({ url, projectKey: 'secret_a\n' }))
})

test('settings of the queue that are undefined have their defaults', async () => {
  const ingest = { maxQueue: undefined, onError: undefined, onRejected: undefined }
  const refusal = { rejects: [{ index: 0, code: 'unknown_field', reason: 'profile.mail is unknown' }] }
  const fetch = async () => Response.json(refusal)
  const tundish = new Tundish({ url, projectKey: 'key', ingest, fetch })
  const print = mock.method(console, 'error', () => {})
  try {
    tundish.identify({ id: 'ada' })
    await tundish.flush()
    assert.deepEqual(print.mock.calls[0]!.arguments, ['Tundish did not write profile ada: unknown_field'])
    for (let n = 0; n < 10_000; n += 1) tundish.identify({ id: 'ada' })
    assert.throws(() => tundish.identify({ id: 'ada' }), /^Error: The queue is full: /)
    await tundish.close()
  } finally {
    print.mock.restore()
  }
})

test('runs on a server whose tests have the document of jsdom or Happy DOM, and in no page that says it has', () => {
  const pageOf = (userAgent: string) => ({ document: { defaultView: { navigator: { userAgent } } } })
  const open = () => new Tundish({ url, projectKey: 'key' })
  const refused = /^Error: A secret key must not reach a browser: /
  const { process } = globalThis
  try {
    for (const name of ['jsdom/29.1.1', 'HappyDOM/20.0.0']) {
      Object.assign(globalThis, pageOf(`Mozilla/5.0 (linux) AppleWebKit/537.36 (KHTML, like Gecko) ${name}`))
      assert.ok(open())
      Object.assign(globalThis, { process: { versions: {} } })
      assert.throws(open, refused)
      Object.assign(globalThis, { process })
    }
    // A window of Electron has the modules of Node.
    Object.assign(globalThis, pageOf('Mozilla/5.0 (X11; Linux x64) Chrome/142.0.0.0 Electron/39.0.0 Safari/537.36'))
    assert.throws(open, refused)
  } finally {
    Object.assign(globalThis, { process })
    Reflect.deleteProperty(globalThis, 'document')
  }
})

test('a webhook verifies with names in any case, and by one of several signatures', () => {
  const secrets = ['old', 'new'].map((key) => `whsec_${Buffer.from(key.repeat(8)).toString('base64')}`)
  const body = JSON.stringify({ type: 'profile.anonymized', data: { id: 'Zoë' } })
  const headersAt = (at: Date) => ({
    'Webhook-Id': 'evt',
    'Webhook-Timestamp': String(Math.floor(at.getTime() / 1000)),
    'Webhook-Signature': secrets.map((secret) => new Webhook(secret).sign('evt', at, body)).join(' '),
  })
  const headers = headersAt(new Date())
  const shapes = [headers, new Headers(headers), new Map(Object.entries(headers)) as never as Headers]
  for (const secret of secrets)
    for (const shape of shapes)
      for (const raw of [body, Buffer.from(body), new TextEncoder().encode(body)])
        assert.equal(webhooks.unwrap(raw, shape, secret).type, 'profile.anonymized')
  const [secret] = secrets as [string]
  assert.throws(
    () => webhooks.unwrap(body, headersAt(new Date(Date.now() - 301_000)), secret),
    WebhookVerificationError,
  )
  assert.throws(() => webhooks.unwrap(body, {}, secret), WebhookVerificationError)
  const raw = /^TypeError: Give unwrap the raw body, /
  for (const parsed of [JSON.parse(body), undefined]) assert.throws(() => webhooks.unwrap(parsed, headers, secret), raw)
})

test('a webhook secret that is missing, empty or no base64 is a TypeError, and one with a line break at its end verifies', () => {
  const secret = `whsec_${Buffer.from('a secret of 24 letters..').toString('base64')}`
  const body = JSON.stringify({ type: 'profile.anonymized' })
  const at = new Date()
  const headers = {
    'webhook-id': 'evt',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('evt', at, body),
  }
  assert.equal(webhooks.unwrap(body, headers, `${secret}\n`).type, 'profile.anonymized')
  const message = 'Give unwrap the whole webhook secret, as it was printed: whsec_….'
  for (const wrong of [undefined, '', 'whsec_', 'whsec_…', 'whsec_abc'])
    assert.throws(() => webhooks.unwrap(body, headers, wrong as string), { name: 'TypeError', message }, wrong)
})
