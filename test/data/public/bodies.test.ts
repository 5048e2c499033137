// What every endpoint with a body does with it: media types, strict JSON, limits, and a sentence for whatever is wrong.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, describe, test } from 'node:test'
import { insert } from '../../support/data.ts'
import { sendBytes, startTestServer } from '../../support/server.ts'

const MIB = 1024 * 1024

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, { profiles: [{ id: 'a' }, { id: 'b' }] })

describe('a body', () => {
  const post = (body: string | Buffer, headers: string[] = []) =>
    server.api('/profiles/anonymize', { key: project.key, method: 'POST', body, headers })
  const good = '{"profile_ids": ["a"]}'

  for (const type of [
    undefined,
    'application/json',
    'Application/JSON',
    'application/json;charset=utf-8',
    'application/json ; charset="UTF-8"',
    'application/json; version=1; charset=utf8',
  ]) {
    test(`200 with ${type === undefined ? 'no Content-Type' : `Content-Type "${type}"`}`, async () => {
      const response = await post(good, type === undefined ? [] : ['Content-Type', type])
      assert.deepEqual([response.status, response.body], [200, { message: '1 profile anonymized.' }])
    })
  }

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json-patch+json',
    '',
    'application/json; charset=iso-8859-1',
  ]) {
    test(`415 with Content-Type "${type}"`, async () => {
      const response = await post(good, ['Content-Type', type])
      assert.equal(response.status, 415)
      assert.match(response.body.message, /^A body must be application\/json in UTF-8, got ".*"\.$/)
    })
  }

  for (const [what, body, message] of [
    ['nothing', '', /^A body is required/],
    ['space', ' \n', /not valid JSON/],
    ['a comma at the end', '{"profile_ids": ["a"],}', /column 23: expected a name/],
    ['two values', `${good}${good}`, /not valid JSON/],
    ['a byte order mark', `\ufeff${good}`, /byte order mark/],
    ['a name twice', '{"profile_ids": ["a"], "profile_ids": ["a"]}', /"profile_ids" appears twice/],
    ['U+0000', '{"profile_ids": ["a\\u0000"]}', /U\+0000/],
    ['the first half of a surrogate pair', '{"profile_ids": ["\\ud83d"]}', /unpaired surrogate/],
    ['33 levels', `{"profile_ids": ${'['.repeat(32)}${']'.repeat(32)}}`, /nested deeper than 32/],
    ['invalid UTF-8', Buffer.from('{"profile_ids": ["\xff"]}', 'latin1'), /invalid UTF-8/],
    [
      'a number beyond a double',
      '{"profile_ids": ["a", 1e400]}',
      /^profile_ids\[1\] must be written without an exponent, got 1e400\.$/,
    ],
    ['one without a field', '1e400', /not valid JSON: column 1: a number out of range/],
    ['UTF-16', Buffer.from(good, 'utf16le'), /not valid JSON|U\+0000/],
  ] as const) {
    test(`400 for ${what}`, async () => {
      const response = await post(body)
      assert.deepEqual([response.status, Object.keys(response.body)], [400, ['message']])
      assert.match(response.body.message, message)
    })
  }

  test('32 levels are read, and validated by the schema', async () => {
    const response = await post(`{"profile_ids": ${'['.repeat(31)}${']'.repeat(31)}}`)
    assert.deepEqual([response.status, response.body.message], [400, 'profile_ids[0] must be a string, got an array.'])
  })

  test('400 for no body at all', async () => {
    const response = await server.api('/profiles/anonymize', { key: project.key, method: 'POST' })
    assert.deepEqual([response.status, response.body.message], [400, 'A body is required: a JSON object.'])
  })

  for (const [what, body, message] of [
    ['a list', '["a"]', 'The body must be an object, got an array.'],
    ['a text', '"a"', 'The body must be an object, got "a".'],
    ['null', 'null', 'A body is required: a JSON object.'],
    ['no property', '{}', 'profile_ids is required.'],
    [
      'an unknown property',
      '{"profile_ids": ["a"], "ids": ["b"]}',
      'Unknown property "ids": the properties are profile_ids.',
    ],
    [
      '__proto__',
      '{"profile_ids": ["a"], "__proto__": {}}',
      'Unknown property "__proto__": the properties are profile_ids.',
    ],
    ['a name with a slash', '{"a/b~c": 1}', 'Unknown property "a/b~c": the properties are profile_ids.'],
    ['an exponent in a list', '[1e400]', /^body\[0\] must be written without an exponent/],
    ['a text for the list', '{"profile_ids": "a"}', 'profile_ids must be an array, got "a".'],
    ['null for the list', '{"profile_ids": null}', 'profile_ids must be an array, got null.'],
    ['a number for an id', '{"profile_ids": ["a", 5]}', 'profile_ids[1] must be a string, got 5.'],
    ['an empty id', '{"profile_ids": [""]}', 'profile_ids[0] must not be empty, got "".'],
    ['no ids', '{"profile_ids": []}', 'profile_ids must have at least 1 item, got 0.'],
    [
      '1001 ids, though all the same',
      JSON.stringify({ profile_ids: new Array(1001).fill('a') }),
      'profile_ids must have at most 1000 items, got 1001.',
    ],
  ] as const) {
    test(`400 for ${what}, naming it`, async () => {
      const response = await post(body)
      assert.equal(response.status, 400)
      if (typeof message === 'string') assert.equal(response.body.message, message)
      else assert.match(response.body.message, message)
    })
  }

  test('413 above 1 MiB, and not at 1 MiB', async () => {
    const padded = (size: number) => good + ' '.repeat(size - good.length)
    assert.equal((await post(padded(MIB))).status, 200)
    const response = await post(padded(MIB + 1))
    assert.deepEqual([response.status, response.body], [413, { message: 'The body is larger than 1 MiB.' }])
  })

  test('413 above 1 MiB in chunks, without Content-Length', async () => {
    const head = `POST /public/v1/profiles/anonymize HTTP/1.1\r\nHost: x\r\nService-Secret: ${project.key}\r\nTransfer-Encoding: chunked\r\n\r\n`
    const response = await sendBytes(
      server.url,
      `${head}${(MIB + 1).toString(16)}\r\n${' '.repeat(MIB + 1)}\r\n0\r\n\r\n`,
    )
    assert.match(response, /^HTTP\/1.1 413 /)
    assert.match(response, /\r\nx-request-id: /i)
  })
})

test('a caller who goes away while a body is read is no failure of the server', async () => {
  const record = `${JSON.stringify({ record: 'profile', data: { id: 'half', created_at: '2026-01-31T09:00:00Z' } })}\n`
  const lines = [
    'POST /public/v1/records HTTP/1.1',
    `Service-Secret: ${project.key}`,
    'Content-Type: application/x-ndjson',
  ]
  const form = ['POST /theme HTTP/1.1', `Origin: ${server.adminUrl}`, 'Content-Type: application/x-www-form-urlencoded']
  for (const [url, head, sent] of [
    [server.url, lines, record],
    [server.url, lines, record.repeat(20_000)],
    [server.adminUrl, form, 'theme='],
  ] as const) {
    const { host, hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.resume()
    socket.end([...head, `Host: ${host}`, `Content-Length: ${sent.length + 1}`, '', sent].join('\r\n'))
    await once(socket, 'close')
  }
  assert.equal((await project.get('/profiles/half')).status, 404)
  assert.deepEqual(
    server.logLines().filter((line) => JSON.parse(line).level >= 50),
    [],
  )
})
