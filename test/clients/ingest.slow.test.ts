// Records that the client writes in the background: order, a server that is away, lost responses, rejects, limits, the end.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { type RecordToWrite, type RejectedRecord, Tundish } from '../../clients/js/src/index.ts'
import { openProxy } from '../support/proxy.ts'
import { type Project, startTestServer, type TestServer } from '../support/server.ts'

const created_at = '2026-01-31T09:00:00Z'
const server = await startTestServer()
after(() => server.stop())

async function keyOf({ admin }: TestServer, { id }: Project): Promise<string> {
  const body = { name: 'Quiz server', scope: ['write'] }
  const response = await admin(`/projects/${id}/keys`, { method: 'POST', body })
  assert.ok(response.body.secret_key, response.text)
  return response.body.secret_key
}

const eventsOf = async ({ id }: Project, type: string) =>
  (await server.db.query('select 1 from events where project_id = $1 and type = $2', [id, type])).length

const phoneOf = async (project: Project, id: string) => (await project.get(`/profiles/${id}`)).body.phone

test('everything is written once and in its order, while the server is away and responses are lost', async () => {
  const project = await server.project()
  const proxy = await openProxy(server.url)
  const failures: string[] = []
  let lost = 2
  const tundish = new Tundish({
    url: proxy.url,
    projectKey: await keyOf(server, project),
    ingest: {
      onError: ({ message }) => failures.push(message),
      onRejected: (rejected) => assert.fail(rejected.reason),
    },
    // Requests that arrive, and whose responses do not.
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      if (lost === 0) return response
      lost -= 1
      await response.text()
      throw new TypeError('response lost')
    },
  })
  tundish.identify({ id: 'ada', created_at, email: 'ada@example.com' })
  tundish.session({ id: 'ses', created_at, profile_id: 'ada', origin: 'https://quiz.example.com' })
  const screen = { id: 'screen', index: 0 }
  tundish.reply({ session_id: 'ses', screen, element: { id: 'goal', type: 'choice' }, value: ['sleep'] })
  await tundish.flush()
  assert.equal(failures.filter((message) => message === 'response lost').length, 2)
  const { body: replies } = await project.get('/sessions/ses/replies')
  assert.deepEqual(replies[0].state.value, ['sleep'])

  await proxy.cut()
  failures.length = 0
  const changing = { id: 'ada', phone: '' }
  for (let n = 1; n <= 250; n += 1) {
    changing.phone = String(n)
    tundish.identify(changing)
    tundish.identify({ id: `p${n}`, created_at })
  }
  while (failures.length === 0) await new Promise(setImmediate)
  await assert.rejects(tundish.flush({ timeoutMs: 10 }), /^Error: The records were not sent within 10 ms\.$/)
  await proxy.mend()
  await tundish.flush()
  assert.equal(await phoneOf(project, 'ada'), '250')
  assert.equal(await eventsOf(project, 'profile.created'), 251)
  assert.equal((await project.get('/profiles')).body.pagination.total, 251)
  assert.deepEqual(await tundish.close(), [])
  assert.throws(() => tundish.identify({ id: 'late' }), /^Error: The client is closed: it takes no more records\.$/)
  await proxy.cut()
})

test('records send no events if the queue is told so', async () => {
  const project = await server.project()
  const projectKey = await keyOf(server, project)
  for (const events of [false, true]) {
    const tundish = new Tundish({ url: server.url, projectKey, ingest: { events } })
    tundish.identify({ id: `events-${events}`, created_at })
    await tundish.close()
  }
  assert.equal((await project.get('/profiles')).body.pagination.total, 2)
  assert.equal(await eventsOf(project, 'profile.created'), 1)
})

test('returns each rejected record with code and reason, and writes the others', async () => {
  const project = await server.project()
  const rejected: RejectedRecord[] = []
  const tundish = new Tundish({
    url: server.url,
    projectKey: await keyOf(server, project),
    ingest: {
      onRejected(one) {
        rejected.push(one)
        throw new Error('A fault of the listener stops nothing.')
      },
    },
  })
  const bad = [
    { record: 'session', data: { id: 'ses', created_at, profile_id: 'nobody' } },
    { record: 'payment', data: { external_id: 'ada' } },
    { record: 'profile', data: { id: 'p', mail: 'x' } },
    // A whole call with this is refused, since no text in the database has this character.
    { record: 'profile', data: { id: 'nul', created_at, preview: { text: '\u0000' } } },
  ] as RecordToWrite[]
  for (const [n, record] of bad.entries()) {
    for (let good = 0; good < 3; good += 1) tundish.identify({ id: `good-${n}-${good}`, created_at })
    tundish.ingest(record)
  }
  await tundish.flush()
  assert.deepEqual(
    rejected.map(({ record, code }) => [record.data['id'], code]).toSorted(),
    [
      ['nul', 'invalid_json'],
      ['p', 'unknown_field'],
      ['ses', 'unknown_reference'],
      [undefined, 'missing_field'],
    ].toSorted(),
  )
  assert.ok(rejected.every(({ reason }) => reason.length > 10))
  assert.equal((await project.get('/profiles')).body.pagination.total, 12)
  const huge = { id: 'huge', created_at, phone: 'x'.repeat(1_000_000) }
  assert.throws(() => tundish.identify(huge), /^RangeError: A record may have 1000000 bytes; this one has 1\d+\.$/)
})

test('waits as long as Retry-After says after 429, and loses nothing', async () => {
  const limited = await startTestServer({ RATE_LIMIT: '1', RATE_LIMIT_BURST: '1' })
  try {
    const project = await limited.project()
    const calls: { status: number; at: number; wait: number }[] = []
    const tundish = new Tundish({
      url: limited.url,
      projectKey: await keyOf(limited, project),
      ingest: { onError: () => {} },
      fetch: async (input, init) => {
        const at = performance.now()
        const response = await fetch(input, init)
        calls.push({ status: response.status, at, wait: Number(response.headers.get('retry-after')) * 1000 })
        return response
      },
    })
    let people = 0
    let refused = -1
    // A busy machine may take longer for each call than the key has to wait.
    for (let round = 0; refused < 0 && round < 20; round += 1) {
      for (const most = people + 201; people < most; people += 1) tundish.identify({ id: `p${people}`, created_at })
      await tundish.flush()
      refused = calls.findIndex(({ status }) => status === 429)
    }
    assert.ok(refused > 0, 'no call was refused')
    const [before, next] = calls.slice(refused)
    assert.ok(before!.wait >= 1000 && next!.at - before!.at >= before!.wait, `${next!.at - before!.at} ms`)
    const [{ n }] = (await limited.db.query('select count(*) n from profiles')) as [{ n: string }]
    assert.equal(Number(n), people)
  } finally {
    await limited.stop()
  }
})

test('sends again after 408: the request had not arrived as a whole', async () => {
  const project = await server.project()
  let calls = 0
  const tundish = new Tundish({
    url: server.url,
    projectKey: await keyOf(server, project),
    fetch: async (input, init) => {
      calls += 1
      if (calls > 1) return fetch(input, init)
      return new Response('{"message":"The request did not arrive in time."}', { status: 408 })
    },
  })
  tundish.identify({ id: 'slow', created_at })
  await tundish.flush()
  assert.equal(calls, 2)
  assert.equal((await project.get('/profiles/slow')).status, 200)
})

test('what a proxy sends in place of a response loses no record, and a charge is sent again with its key', async () => {
  const project = await server.project()
  const errors: string[] = []
  const bodies = ['<html>sign in</html>', '{"read":1,"rej', '{"ok":true}', 'null']
  const tundish = new Tundish({
    url: server.url,
    projectKey: await keyOf(server, project),
    ingest: { onError: ({ name, message }) => errors.push(`${name}: ${message}`) },
    fetch: async (input, init) => (bodies.length > 0 ? new Response(bodies.shift()) : fetch(input, init)),
  })
  tundish.identify({ id: 'ada', created_at })
  await tundish.flush()
  const notJson = 'TundishConnectionError: The response is not valid JSON: it broke off, or a proxy sent it.'
  const foreign = 'TundishConnectionError: The response is not from Tundish: check the url.'
  assert.deepEqual(errors, [notJson, notJson, foreign, foreign])
  assert.equal((await project.get('/profiles/ada')).status, 200)

  const sent: string[] = []
  const { billing } = new Tundish({
    url: server.url,
    organization: { id: 'acme', key: 'key' },
    fetch: async (_, init) => {
      sent.push(JSON.parse(String(init?.body)).idempotency_key)
      return new Response(sent.length === 1 ? '{"checkout_sta' : '{"checkout_status":"succeeded"}')
    },
  })
  const charge = { externalId: 'ada', amount: '1', currencyCode: 'USD', idempotencyKey: 'one' }
  assert.equal((await billing.charge(charge)).checkout_status, 'succeeded')
  assert.deepEqual(sent, ['one', 'one'])
})

test('a clear error when the queue is full or the key is wrong; close returns what was not sent', async () => {
  const errors: string[] = []
  const onError = ({ message }: Error) => void errors.push(message)
  const tundish = new Tundish({ url: server.url, projectKey: 'secret_wrong', ingest: { maxQueue: 2, onError } })
  tundish.identify({ id: 'a' })
  tundish.identify({ id: 'b' })
  assert.throws(() => tundish.identify({ id: 'c' }), /^Error: The queue is full: 2 records wait for the server\. /)
  await assert.rejects(tundish.flush(), { name: 'TundishError', status: 401, code: 'unauthorized' })
  assert.equal(errors.length, 1)
  assert.deepEqual(await tundish.close({ timeoutMs: 1 }), [
    { record: 'profile', data: { id: 'a' } },
    { record: 'profile', data: { id: 'b' } },
  ])
  const none = new Tundish({ url: server.url })
  assert.throws(() => none.identify({ id: 'a' }), /^TypeError: Give the client a projectKey/)
})

/** Runs a program that queues so many people, does `then` and ends; returns what it printed to the standard error. */
async function queueAndEnd(
  people: number,
  key: string,
  { then = '', url = server.url, flags = [] as string[] } = {},
): Promise<string> {
  const client = join(import.meta.dirname, '../../clients/js/src/index.ts')
  const program = `
    import { Tundish } from ${JSON.stringify(client)}
    const tundish = new Tundish({ url: process.env.URL, projectKey: process.env.KEY })
    for (let n = 0; n < ${people}; n += 1) tundish.identify({ id: 'p' + n, created_at: '${created_at}' })
    ${then}`
  const args = [...flags, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
  const { stderr } = await promisify(execFile)(process.execPath, args, {
    env: { URL: url, KEY: key },
    timeout: 60_000,
  })
  return stderr
}

test('a program that ends sends what is queued', async () => {
  const project = await server.project()
  assert.equal(await queueAndEnd(150, await keyOf(server, project)), '')
  assert.equal((await project.get('/profiles')).body.pagination.total, 150)
})

test('a program whose key is revoked says that it is refused, and which records were not sent', async () => {
  const lines = (await queueAndEnd(2, 'secret_revoked')).trim().split('\n')
  assert.match(lines[0]!, /^Tundish refuses the records, trying again: Unauthorized: /)
  assert.deepEqual(lines.slice(-2), [
    'Tundish did not write profile p0: not_sent',
    'Tundish did not write profile p1: not_sent',
  ])
})

test('a client whose records are sent is not kept for the end of the program', async () => {
  const then = `
    let collected = 0
    const registry = new FinalizationRegistry(() => { collected += 1 })
    const options = { url: process.env.URL, projectKey: process.env.KEY }
    for (let n = 0; n < 10; n += 1) {
      const one = new Tundish(options)
      registry.register(one)
      one.identify({ id: 'kept' + n, created_at: '${created_at}' })
      await one.flush()
    }
    for (let tries = 0; collected < 5 && tries < 500; tries += 1) {
      gc()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    console.error(collected < 5 ? 'kept' : 'collected')`
  const key = await keyOf(server, await server.project())
  assert.equal((await queueAndEnd(0, key, { then, flags: ['--expose-gc'] })).trim(), 'collected')
})

test('a program whose flush had too little time ends while the server stays away', async () => {
  const then = 'await tundish.flush({ timeoutMs: 1 }).catch(({ message }) => console.error(message))'
  const lines = (await queueAndEnd(1, 'secret_any', { then, url: 'http://127.0.0.1:1' })).trim().split('\n')
  assert.ok(lines.includes('The records were not sent within 1 ms.'), lines.join())
  assert.equal(lines.at(-1), 'Tundish did not write profile p0: not_sent')
})
