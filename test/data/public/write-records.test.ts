// Records written with a project's key: merging, feeds, events, bad records, batches, limits.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { line, T, textOf } from '../../support/imports.ts'
import { ok, type Project, startTestServer } from '../../support/server.ts'
import { machineSleeps, setDatabaseClock } from '../../support/time.ts'

const server = await startTestServer({ REQUEST_TIMEOUT_MS: '3000', HEADERS_TIMEOUT_MS: '3000' })
after(() => server.stop())

const record = (kind: string, data: object) => ({ record: kind, data })
const put = (project: Project, records: object[], query = '') => project.post(`/records${query}`, { records })
const send = (project: Project, body: string | Buffer, more: string[] = [], query = '') =>
  server.api(`/records${query}`, {
    method: 'POST',
    key: project.key,
    body,
    headers: ['Content-Type', 'application/x-ndjson', ...more],
  })
const none = { read: 0, written: 0, unchanged: 0, skipped: 0, erased: 0, rejected: 0, rejects: [] }
const eventsOf = async ({ id }: Project) =>
  (await server.db.query('select type from events where project_id = $1 order by created_at, id', [id])).map(
    ({ type }) => type,
  )

describe('POST /records', () => {
  test('200 with counts; records are merged, stamped, sent as events, and read at once', async () => {
    const project = await server.project()
    const first = await put(project, [
      line.session({ funnel_id: 'funnel', ip: '192.0.2.7' }),
      line.profile({ email: 'ada@example.com', updated_at: T }),
      line.funnel(),
      line.reply({ value: 'yes' }),
    ])
    assert.deepEqual([first.status, first.body], [200, { ...none, read: 4, written: 4 }])
    const { body: stored } = await project.get('/profiles/profile')
    assert.equal(stored.email, 'ada@example.com')
    assert.notEqual(stored.updated_at, T)
    const changed = await put(project, [record('profile', { id: 'profile', country: 'DE' })])
    assert.deepEqual(changed.body, { ...none, read: 1, written: 1 })
    const { body: merged } = await project.get('/profiles/profile')
    assert.deepEqual([merged.email, merged.country], ['ada@example.com', 'DE'])
    assert.ok(merged.updated_at > stored.updated_at)
    const same = await put(project, [
      record('profile', { id: 'profile', country: 'DE' }),
      record('profile', { id: 'profile', phone: '1', updated_at: '2025-01-01T00:00:00Z' }),
    ])
    assert.deepEqual(same.body, { ...none, read: 2, unchanged: 1, skipped: 1 })
    assert.equal((await project.get('/profiles/profile')).body.updated_at, merged.updated_at)
    assert.deepEqual((await eventsOf(project)).toSorted(), [
      'profile.created',
      'profile.updated',
      'session.completed',
      'session.created',
    ])
    const marks = await server.db.query('select 1 from figure_marks where project_id = $1', [project.id])
    assert.ok(marks.length > 0)
    const audited = await server.db.query(`select action from audit_log where target like '%' || $1`, [project.id])
    assert.deepEqual(
      audited.filter(({ action }) => action!.startsWith('import')),
      [],
    )
  })

  test('keeps values larger than a page, also in a line that does not have them', async () => {
    const project = await server.project()
    const query_params = { utm_source: 'mail', wide: randomBytes(15_000).toString('hex'), short: '😀'.repeat(500) }
    await put(project, [line.profile(), line.funnel(), line.session({ id: 'ses', funnel_id: 'funnel', query_params })])
    const merged = await put(project, [record('session', { id: 'ses', country: 'DE' }), line.session({ id: 'other' })])
    assert.deepEqual(merged.body, { ...none, read: 2, written: 2 })
    const { body } = await project.get('/sessions/ses')
    assert.deepEqual([body.query_params, body.attributes.country], [query_params, 'DE'])
  })

  test('200 for a country in small letters, which is stored in capitals, and other texts as they are', async () => {
    const project = await server.project()
    const countries = { small: ' de ', capitals: 'DE', name: 'Germany', unknown: 'T1', empty: '' }
    const records = Object.entries(countries).flatMap(([id, country]) => [
      line.profile({ id, country }),
      line.session({ id, profile_id: id, country }),
    ])
    assert.deepEqual((await put(project, records)).body, { ...none, read: 10, written: 10 })
    for (const [id, country] of Object.entries({ ...countries, small: 'DE' })) {
      assert.equal((await project.get(`/profiles/${id}`)).body.country, country)
      assert.equal((await project.get(`/sessions/${id}`)).body.attributes.country, country)
    }
    const again = await put(project, [record('profile', { id: 'small', country: 'de' })])
    assert.deepEqual(again.body, { ...none, read: 1, unchanged: 1 })
  })

  test('stores a reply without a value, and clears one', async () => {
    const project = await server.project()
    const { value: _, ...empty } = line.reply({ session_id: 'session' }).data
    const answered = { ...empty, value: ['a', 'b'] }
    const values = async () =>
      (await project.get('/sessions/session/replies')).body.map(({ state }: { state: object }) => state)
    await put(project, [line.profile(), line.session(), record('reply', empty)])
    assert.deepEqual(await values(), [{ value: null }])
    for (const [data, value] of [
      [answered, ['a', 'b']],
      [empty, ['a', 'b']],
      [{ ...empty, value: null }, null],
    ] as const) {
      await ok(put(project, [record('reply', data)]))
      assert.deepEqual(await values(), [{ value }])
    }
  })

  test('replaces with mode=replace, and sends no event with events=off', async () => {
    const project = await server.project()
    await put(project, [line.profile({ email: 'a@x', phone: '1' })], '?events=off')
    await put(project, [line.profile({ phone: '2' })], '?mode=replace&events=off')
    const { body } = await project.get('/profiles/profile')
    assert.deepEqual([body.email, body.phone], [null, '2'])
    assert.deepEqual(await eventsOf(project), [])
  })

  test('400 and nothing written for a bad record, 200 for the rest with skip_bad', async () => {
    const project = await server.project()
    const records = [
      line.profile(),
      line.session({ profile_id: 'nobody' }),
      record('profile', { id: 'p', mail: 'x' }),
      record('profile', { id: 'unknown', phone: '1' }),
      line.payment(),
    ]
    const refused = await put(project, records)
    assert.deepEqual([refused.status, refused.headers['x-error-code']], [400, 'records_rejected'])
    assert.deepEqual(
      refused.body.rejects.map(({ index, code }: { index: number; code: string }) => `${index} ${code}`),
      ['2 unknown_field', '4 not_allowed'],
    )
    assert.equal((await project.get('/profiles')).body.pagination.total, 0)
    const good = await put(project, records, '?skip_bad=true')
    assert.deepEqual([good.status, good.body.written, good.body.rejected], [200, 1, 4])
    const lost = await put(project, records.slice(1, 2))
    assert.deepEqual(
      [lost.status, lost.body.message, lost.body.read],
      [400, '1 record is bad: nothing was written.', 1],
    )
    assert.equal(lost.body.rejects[0].reason, 'session.profile_id refers to an unknown profile: nobody')
  })

  test('names each bad record of a call, of which there may be hundreds', async () => {
    const project = await server.project()
    const records = Array.from({ length: 999 }, (_, n) => record('profile', { id: `p${n}`, phone: '1' }))
    const { status, body } = await put(project, [line.profile(), ...records], '?skip_bad=true')
    assert.deepEqual([status, body.written, body.rejected], [200, 1, 999])
    const named = new Set(body.rejects.map(({ index }: { index: number }) => index))
    assert.deepEqual([named.size, named.has(0)], [999, false])
  })

  test('400 for each of the lines about a new record when the one that creates it is bad, and 200 for the rest with skip_bad', async () => {
    const project = await server.project()
    const records = [
      line.session({ id: 'lost', profile_id: 'nobody' }),
      record('session', { id: 'lost', city: 'Bonn' }),
      line.profile(),
    ]
    const body = records.map((one) => JSON.stringify(one)).join('\n')
    const refused = await put(project, records)
    assert.deepEqual([refused.status, refused.body.rejected], [400, 2], refused.text)
    for (const good of [
      await put(project, records, '?skip_bad=true'),
      await send(project, body, [], '?skip_bad=true'),
    ]) {
      const codes = good.body.rejects?.map(({ code }: { code: string }) => code)
      assert.deepEqual([good.status, codes], [200, ['unknown_reference', 'missing_field']], good.text)
    }
    assert.equal((await project.get('/profiles')).body.pagination.total, 1)
  })

  test('200 for lines about a new record of which the one that creates it comes late', async () => {
    const project = await server.project()
    const at = (second: number) => ({ updated_at: `2026-01-02T03:04:0${second}Z` })
    const records = [
      record('profile', { id: 'profile', email: 'new@x', ...at(8) }),
      line.profile({ email: 'old@x', phone: '1', country: 'DE', ...at(6) }),
      record('profile', { id: 'profile', phone: '2', ...at(7) }),
      record('profile', { id: 'other', email: 'new@x' }),
      line.profile({ id: 'other', email: 'old@x', ...at(6) }),
    ]
    const { status, body, text } = await put(project, records)
    assert.deepEqual([status, body], [200, { ...none, read: 5, written: 4, skipped: 1 }], text)
    const { body: stored } = await project.get('/profiles/profile')
    assert.deepEqual([stored.email, stored.phone, stored.country], ['new@x', '1', 'DE'])
    assert.equal((await project.get('/profiles/other')).body.email, 'new@x')
    const older = await put(project, [record('profile', { id: 'profile', phone: '3', ...at(7) })])
    assert.equal(older.body.skipped, 1)
  })

  test('413 for more empty lines one after the other than the limit, however small their gzip is; fewer are skipped', async () => {
    const project = await server.project()
    const packed = (text: string) => send(project, gzipSync(text), ['Content-Encoding', 'gzip'])
    const refused = await packed('\n'.repeat(20_000_000))
    assert.deepEqual([refused.status, refused.headers['x-error-code']], [413, 'body_too_large'])
    assert.match(
      refused.body.message,
      /^body has more than 1048576 bytes of empty lines one after the other, up to line/,
    )
    const profile = (id: string) => textOf([line.profile({ id })])
    for (const count of [200_000, 1_048_576]) {
      const { body } = await packed(`${profile(`a${count}`)}${'\n'.repeat(count)}${profile(`b${count}`)}`)
      assert.equal(body.written, 2)
    }
    // Not compressed, the refusal comes before the end of the body.
    assert.equal((await send(project, '\n'.repeat(5_000_000))).status, 413)
    const { body } = await send(project, `${profile('c')}${'\n'.repeat(100_000)}{}\n`)
    assert.deepEqual([body.rejected, body.rejects?.[0].line], [1, 100_002], JSON.stringify(body))
  })

  test('400 after the hundredth bad line, and the rest of the body is dropped: the connection goes on', async () => {
    const project = await server.project()
    const refused = await send(project, '{\n'.repeat(2_000_000))
    assert.deepEqual([refused.status, refused.body.read, refused.body.rejected], [400, 100, 100])
    assert.equal((await send(project, textOf([line.profile()]))).body.written, 1)
  })

  test('newline-delimited JSON: 200 with the lines of bad ones, also with gzip', async () => {
    const project = await server.project()
    const lines = textOf([line.profile(), line.session({ profile_id: 'nobody' }), '{'])
    const refused = await send(project, lines)
    assert.equal(refused.status, 400)
    assert.deepEqual(
      refused.body.rejects.map(({ line: number, code }: { line: number; code: string }) => `${number} ${code}`),
      ['3 invalid_json', '2 unknown_reference'],
    )
    const packed = gzipSync(textOf(Array.from({ length: 1500 }, (_, n) => line.profile({ id: `p${n}` }))))
    const written = await send(project, packed, ['Content-Encoding', 'gzip'])
    assert.deepEqual([written.status, written.body.written], [200, 1500])
    const damaged = await send(project, packed.subarray(0, 500), ['Content-Encoding', 'gzip'])
    assert.equal(damaged.status, 400)
    const other = await send(project, lines, ['Content-Encoding', 'br'])
    assert.deepEqual([other.status, other.body.message], [415, 'Content-Encoding must be gzip or identity, got "br".'])
    assert.equal((await send(project, `${JSON.stringify(line.payment())}\n`)).body.rejects[0].code, 'not_allowed')
  })

  test('400, 413 and 415 for bodies that are not records, 401 without the key', async () => {
    const project = await server.project()
    const post = (body: object | string, headers: string[] = []) =>
      server.api('/records', { method: 'POST', key: project.key, body, headers })
    for (const body of [{}, [], { records: [] }, { records: {} }, { records: [line.profile()], more: 1 }])
      assert.equal((await post(body)).status, 400, JSON.stringify(body))
    const thousand = Array.from({ length: 1001 }, (_, n) => line.profile({ id: `p${n}` }))
    assert.equal((await put(project, thousand)).status, 400)
    assert.equal((await put(project, thousand.slice(1))).body.written, 1000)
    assert.equal((await put(project, [line.profile({ phone: 'x'.repeat(1 << 20) })])).status, 413)
    assert.equal((await post('{}', ['Content-Encoding', 'gzip'])).status, 415)
    const other = await server.api('/records', {
      method: 'POST',
      key: project.key,
      body: '{}',
      headers: ['Content-Type', 'application/jsonl'],
    })
    const sentence = 'A body must be application/json in UTF-8 or application/x-ndjson, got "application/jsonl".'
    assert.deepEqual([other.status, other.body.message], [415, sentence])
    const lines = (charset: string) =>
      server.api('/records', {
        method: 'POST',
        key: project.key,
        body: textOf([line.profile({ id: 'lines' })]),
        headers: ['Content-Type', `application/x-ndjson; charset=${charset}`],
      })
    assert.deepEqual([(await lines('latin1')).status, (await lines('"UTF-8"')).body.written], [415, 1])
    assert.equal((await put(project, [line.profile()], '?mode=other')).status, 400)
    assert.equal((await server.api('/records', { method: 'POST', body: {} })).status, 401)
  })

  test('keeps erased people erased', async () => {
    const project = await server.project()
    await put(project, [line.profile({ email: 'a@x' }), line.session({ ip: '192.0.2.7' })])
    await project.post('/profiles/anonymize', { profile_ids: ['profile'] })
    const again = await put(project, [
      record('profile', { id: 'profile', email: 'a@x' }),
      record('session', { id: 'session', ip: '192.0.2.7' }),
      line.session({ id: 'new', ip: '192.0.2.7' }),
    ])
    assert.deepEqual(again.body, { ...none, read: 3, erased: 3 })
    const rows = await server.db.query(
      'select p.email, s.ip from profiles p join sessions s using (project_id) where project_id = $1',
      [project.id],
    )
    assert.deepEqual(rows, [
      { email: null, ip: null },
      { email: null, ip: null },
    ])
  })

  test('408 for a body that does not end, and nothing is left', async () => {
    const project = await server.project()
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST /public/v1/records HTTP/1.1\r\nHost: x\r\nService-Secret: ${project.key}\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n`,
    )
    const text = `${JSON.stringify(line.profile())}\n`
    socket.write(`${text.length.toString(16)}\r\n${text}\r\n`)
    let response = ''
    for await (const chunk of socket) response += String(chunk)
    assert.match(response, /^HTTP\/1\.1 408 /)
    assert.equal((await project.get('/profiles')).body.pagination.total, 0)
    // The turn of the organization and the slot are free again.
    assert.equal((await put(project, [line.profile()])).body.written, 1)
    assert.equal((await send(project, text)).body.unchanged, 1)
  })
})

test('many calls at once: each has the result that it has alone, and a bad one fails alone', async () => {
  const project = await server.project()
  await put(project, [line.profile(), line.funnel()])
  const calls = Array.from({ length: 120 }, (_, n) => {
    if (n % 10 === 3)
      return put(project, [line.session({ id: `s${n}`, profile_id: 'nobody' }), line.profile({ id: `p${n}` })])
    if (n % 10 === 4) return put(project, [line.session({ id: `s${n}`, profile_id: `p${n - 1}` })])
    return put(project, [
      line.session({ id: `s${n}`, funnel_id: 'funnel' }),
      record('profile', { id: 'profile', phone: String(n) }),
    ])
  })
  for (const [n, { status, body }] of (await Promise.all(calls)).entries()) {
    const isBad = n % 10 === 3 || n % 10 === 4
    assert.deepEqual([status, body.written], isBad ? [400, 0] : [200, 2], `${n}: ${body.message}`)
  }
  const { body } = await project.get('/sessions')
  assert.equal(body.pagination.total, 96)
  assert.equal((await project.get('/profiles')).body.pagination.total, 1)
})

test('400 with the record that only the database refuses, and other calls of its batch are written', async () => {
  const project = await server.project()
  const [other, long] = [line.profile({ id: 'other' }), randomBytes(2900).toString('base64')]
  await server.db.query(`create index of_the_operator on sessions (user_agent) where project_id = '${project.id}'`)
  try {
    const [refused, written] = await Promise.all([
      put(project, [line.profile(), line.session({ user_agent: long }), line.session({ id: 'good' })]),
      put(project, [other]),
    ])
    assert.deepEqual([refused.status, refused.headers['x-error-code']], [400, 'records_rejected'], refused.text)
    const [{ index, code, reason }] = refused.body.rejects
    assert.deepEqual([refused.body.written, index, code], [0, 1, 'refused_by_database'])
    assert.match(reason, /^session is refused by the database at the table sessions \(54000: index row size/)
    assert.deepEqual([written.status, written.body.written], [200, 1])
    const body = [line.profile(), line.session({ user_agent: long })].map((one) => JSON.stringify(one)).join('\n')
    const lines = await send(project, body, [], '?skip_bad=true')
    assert.deepEqual([lines.status, lines.body.written, lines.body.rejects[0].line], [200, 1, 2], lines.text)
  } finally {
    await server.db.query('drop index of_the_operator')
  }
})

test('200 for a record of the present time after the machine slept', async (t) => {
  const project = await server.project()
  assert.equal((await put(project, [line.profile()])).status, 200)
  await setDatabaseClock(server.env.DATABASE_URL!, '1 hour')
  t.after(() => setDatabaseClock(server.env.DATABASE_URL!, undefined))
  machineSleeps(t, 3_600_000)
  const created_at = new Date(Date.now()).toISOString()
  const putLater = () => put(project, [line.profile({ id: 'later', created_at })])
  let { status, text } = await putLater()
  // Moving the database's clock has ended its sessions.
  while (status === 503) ({ status, text } = await putLater())
  assert.equal(status, 200, text)
})
