// The keys that write records: shown on the pages Sync and Keys, counted in metrics, and what a project lets them write.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startDashboard } from '../../support/dashboard.ts'
import { line, textOf, uuid } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { until } from '../../support/time.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const cookie = await dashboard.signInAs('write')
const path = `project=${dashboard.project.id}`

const see = async (page: string) => (await dashboard.visit(`${page}?${path}`, { cookie })).text
const rows = (sql: string) => dashboard.server.db.query(sql, [dashboard.project.id])
const writer = await makeWriter()

/** Creates a key that only writes by the form of the page Keys, which shows it once. */
async function makeWriter() {
  const form = { name: 'quiz server', scope: 'write', expires: '2592000' }
  const shown = await dashboard.visit(`/keys/project/${dashboard.project.id}`, { cookie, form })
  const [key] = /secret_[A-Za-z0-9_-]+/.exec(shown.text)!
  const [row] = await rows(`select id from secret_keys where project_id = $1 and name = 'quiz server'`)
  return { id: row!.id!, key }
}

const write = (body: object | string | Buffer, headers: string[] = []) =>
  dashboard.server.api('/records', {
    method: 'POST',
    key: writer.key,
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    headers: headers.length > 0 ? headers : ['Content-Type', 'application/json'],
  })
const LINES = ['Content-Type', 'application/x-ndjson']

test('the page Keys shows what a key may do, its last four characters and its last use', async () => {
  assert.equal((await write({ records: [line.profile()] })).status, 200)
  await until('the use', async () => (await rows('select 1 from key_uses where project_id = $1')).length > 0)
  const page = await see('/keys')
  const [ofWriter] = page.split('<tr').filter((row) => row.includes('quiz server'))
  assert.match(ofWriter!, /<td[^>]*>write</)
  assert.ok(ofWriter!.includes(writer.key.slice(-4)))
  assert.equal(ofWriter!.match(/<time /g)?.length, 3)
  assert.equal((await dashboard.server.api('/profiles', { key: writer.key })).status, 403)
})

test('the page Sync shows the records of each kind, and why some were rejected; metrics count them by key', async () => {
  await write(textOf([line.session(), line.session({ id: 's2' })]), LINES)
  await write(gzipSync(textOf([line.profile({ id: 'p2' }), line.session({ id: 's3', profile_id: 'p2' })])), [
    ...LINES,
    'Content-Encoding',
    'gzip',
  ])
  const bad = await write({ records: [line.profile({ id: 'p3' }), line.session({ id: 's4', profile_id: 'nobody' })] })
  assert.deepEqual([bad.status, bad.body.rejects[0].index], [400, 1])
  const badLines = await write(textOf([line.profile({ id: 'p3' }), '', line.reply({ session_id: 'nothing' })]), LINES)
  assert.deepEqual(
    [badLines.status, badLines.body.rejects[0].line, badLines.body.rejects[0].code],
    [400, 3, 'unknown_reference'],
  )
  const broken = await write('{"record": "profile"}\n{', LINES)
  assert.deepEqual([broken.status, broken.body.rejected], [400, 2])
  await until('the counts', async () => {
    const [row] = await rows(`select sum(n) as n from record_writers where project_id = $1`)
    return row?.n === '9'
  })
  const { key } = await dashboard.operator('read')
  const response = await fetch(
    `${dashboard.server.adminUrl}/admin/v1/projects/${dashboard.project.id}/record-writers`,
    {
      headers: { authorization: `Bearer ${key}` },
    },
  )
  const { data } = (await response.json()) as { data: Record<string, unknown>[] }
  const sums = data.map(({ key_name, record, accepted, rejected }) => [key_name, record, accepted, rejected])
  assert.deepEqual(sums, [
    ['quiz server', '', 0, 2],
    ['quiz server', 'profile', 2, 0],
    ['quiz server', 'reply', 0, 1],
    ['quiz server', 'session', 3, 1],
  ])
  const page = await see('/sync')
  assert.match(page, /1 × unknown_reference: /)
  const metrics = await (await fetch(`${dashboard.server.adminUrl}/metrics`)).text()
  assert.match(metrics, new RegExp(`tundish_records_total\\{key="${writer.id}",outcome="written"\\} 5\\n`))
  assert.match(metrics, new RegExp(`tundish_records_total\\{key="${writer.id}",outcome="rejected"\\} 4\\n`))
})

test('all rejected lines of a large body are counted, with the kinds of those that refer to nothing', async () => {
  const before = await counts()
  const nobody = Array.from({ length: 120 }, (_, n) => line.session({ id: `n${n}`, profile_id: 'nobody' }))
  const body = `${textOf([...nobody, line.profile({ id: 'p9' })])}${'{\n'.repeat(130)}`
  const { body: result } = await dashboard.server.api('/records?skip_bad=true', {
    method: 'POST',
    key: writer.key,
    body,
    headers: LINES,
  })
  assert.deepEqual([result.read, result.written, result.rejected, result.rejects.length], [251, 1, 250, 100])
  await until('the counts', async () => (await counts())[' invalid_json'] !== before[' invalid_json'])
  const after = await counts()
  const added = Object.entries(after).map(([name, n]) => [name, n - (before[name] ?? 0)] as const)
  assert.deepEqual(Object.fromEntries(added.filter(([, n]) => n > 0)), {
    ' invalid_json': 130,
    'profile ': 1,
    'session unknown_reference': 120,
  })
})

const counts = async (): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await rows('select record, code, n from record_writers where project_id = $1')).map(({ record, code, n }) => [
      `${record} ${code}`,
      Number(n),
    ]),
  )

test('payments need the switch of the project, and are written with it', async () => {
  const records = [
    line.customer({ external_id: 'ada', profile_id: 'p2' }),
    line.payment({ external_id: 'ada', trx_id: uuid(41), psp_merchant_id: 'acct' }),
  ]
  const refused = await write({ records })
  assert.deepEqual([refused.status, refused.body.rejects[0].code], [400, 'not_allowed'])
  const form = { write_payments: 'on' }
  assert.equal((await dashboard.visit(`/settings/payments?${path}`, { cookie, form })).status, 303)
  assert.match(await see('/settings'), /Payments by write keys<\/dt>\s*<dd><span[^>]*>allowed/)
  await until('the switch', async () => (await write({ records })).status === 200)
  const stored = await rows('select external_id, profile_id from customers where project_id = $1')
  assert.deepEqual(stored, [{ external_id: 'ada', profile_id: 'p2' }])
  assert.equal((await write(textOf(records), LINES)).body.unchanged, 2)
  const set = await tundishAgain(
    ['project', 'set', dashboard.project.id, '--write-payments', 'off'],
    dashboard.server.env,
  )
  assert.deepEqual([set.code, set.stderr], [0, ''])
  assert.match(set.stdout, /may not write payments/)
  await until('the switch back', async () => (await write({ records })).status === 400)
  const neither = await tundishAgain(['project', 'set', dashboard.project.id], dashboard.server.env)
  assert.deepEqual(
    [neither.code, neither.stderr],
    [2, 'Give --rate-limit, --write-payments, --time-zone or --currency.\n'],
  )
})
