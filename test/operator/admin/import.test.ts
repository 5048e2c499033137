// The import over HTTP: bodies that are refused early, and compressed ones.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { endOperator } from '../../../src/core/tenants/operator-keys.ts'
import { sendWhileRevoked } from '../../conformance/apis.ts'
import { openAdmin } from '../../support/admin.ts'
import { PROJECT } from '../../support/events.ts'
import { line, textOf } from '../../support/imports.ts'

const { events, admin } = await openAdmin()

async function send(
  body: Buffer,
  query = '',
  type = 'application/x-ndjson',
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${admin.adminUrl}/admin/v1/projects/${PROJECT}/import${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin.key}`, ...(type !== '' && { 'content-type': type }) },
    body: new Uint8Array(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('400 after the hundredth bad line, however long the body is, and the connection goes on', async () => {
  const refused = await send(Buffer.from('{\n'.repeat(4_000_000)))
  assert.deepEqual([refused.status, refused.body.read, refused.body.rejected], [400, 100, 100])
  assert.equal((await send(Buffer.from(textOf([line.profile()])))).body.written, 1)
})

test('404 for a project id with U+0000, as at every operation', async () => {
  const response = await fetch(`${admin.adminUrl}/admin/v1/projects/%00a/import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin.key}` },
  })
  assert.deepEqual([response.status, response.headers.get('x-error-code')], [404, 'object_not_found'])
})

test('the rest of a body that comes after the response is dropped, and the connection goes on', async () => {
  const { hostname, port } = new URL(admin.adminUrl)
  const socket = connect(Number(port), hostname)
  const request = (length: number) =>
    `POST /admin/v1/projects/${PROJECT}/import HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${admin.key}\r\n` +
    `Content-Type: application/x-ndjson\r\nContent-Length: ${length}\r\n\r\n`
  const bad = Buffer.from('{\n'.repeat(1_000_000))
  const good = textOf([line.profile()])
  socket.write(request(2 * bad.length))
  socket.write(bad)
  assert.match(await readUntil(socket, '"rejects":'), /"read":100,"written":0/)
  // More than the buffers of both sides hold, so that it has to be read.
  socket.write(bad)
  socket.write(request(good.length))
  socket.write(good)
  assert.match(await readUntil(socket, '"rejects":[]}'), /"read":1,"written":0,"unchanged":1/)
  socket.destroy()
})

/** What comes next, up to `end` at least. */
async function readUntil(socket: Socket, end: string): Promise<string> {
  let text = ''
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk)
    if (text.includes(end)) break
  }
  return text
}

test('400 with the fault of each line when nothing was written, 200 when the good lines were', async () => {
  const good = line.profile({ id: 'good' })
  const lines = Buffer.from(textOf([good, line.session({ id: 'lost', profile_id: 'none' }), '{']))
  const rejects = [
    { line: 3, code: 'invalid_json', reason: 'not JSON: column 2: expected a name in double quotes' },
    { line: 2, code: 'unknown_reference', reason: 'session.profile_id refers to an unknown profile: none' },
  ]
  const counts = { read: 3, written: 0, unchanged: 0, skipped: 0, erased: 0, rejected: 2, rejects }
  const refused = await send(lines)
  assert.deepEqual(refused, {
    status: 400,
    body: { message: '2 records are bad: nothing was written.', ...counts },
  })
  assert.deepEqual(await send(lines, '?skip_bad_lines=true'), { status: 200, body: { ...counts, written: 1 } })
  assert.equal((await send(Buffer.from('{'), '?skip_bad_lines=true')).status, 400)
})

test('200 for a gzip body, and 409 for a damaged one', async () => {
  const packed = gzipSync(textOf([line.profile(), line.session()]))
  assert.deepEqual((await send(packed)).body.read, 2)
  const damaged = await send(packed.subarray(0, packed.length - 12))
  assert.equal(damaged.status, 409)
  assert.match(String(damaged.body.message), /^body is gzip, but damaged or incomplete/)
})

test('409 for more empty lines one after the other than the limit, however small their gzip is', async () => {
  const { status, body } = await send(gzipSync('\r\n'.repeat(50_000_000)), '?skip_bad_lines=true')
  assert.equal(status, 409)
  assert.match(String(body.message), /^body has more than 1048576 bytes of empty lines one after the other, up to line/)
})

test('200 for lines sent as application/json or without a type, 415 for other types', async () => {
  const body = Buffer.from(textOf([line.profile(), line.session()]))
  for (const type of ['', 'application/json', 'application/json; charset=utf-8', 'application/jsonl'])
    assert.deepEqual((await send(body, '', type)).body.read, 2, type)
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/x-ndjson; charset=latin1',
  ]) {
    const refused = await send(body, '', type)
    const message = `A body must be application/json in UTF-8 or application/x-ndjson, got "${type}".`
    assert.deepEqual(refused, { status: 415, body: { message } })
  }
})

test('401 and nothing is done when the operator’s key is revoked while the body arrives', async () => {
  const refused = async (path: string, type: string, halves: [string, string]) => {
    const { id, key } = await admin.operator('write')
    return sendWhileRevoked(
      `${admin.adminUrl}/admin/v1/projects/${PROJECT}/${path}`,
      { authorization: `Bearer ${key}`, 'content-type': type },
      halves,
      () => events.app.db.tx((query) => endOperator(query, id)),
    )
  }
  const lines = [line.profile({ id: 'late' }), line.profile({ id: 'later' })].map((one) => textOf([one]))
  assert.equal(await refused('import', 'application/x-ndjson', [lines[0]!, lines[1]!]), 401)
  assert.equal(await refused('keys', 'application/json', ['{"name":', '"late"}']), 401)
  const found = `select id as found from profiles where id like 'late%' union all select name from secret_keys where name = 'late'`
  assert.deepEqual(await events.app.db.query(found), [])
})
