// tundish import api as a user runs it: a Tundish is copied into another, record by record.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { jsonOf } from '../../../support/cli.ts'
import { line } from '../../../support/imports.ts'
import { tundishAgain } from '../../../support/resident.ts'
import { checkCopied, importLines, openShop, openTarget } from './api-imports.ts'

const shop = await openShop(25)
after(() => shop.stop())

// The horizon may lag by a second.
const HORIZON_MS = 1100

function run(project: string, ...more: string[]) {
  const { from, keyFile, server } = shop
  return tundishAgain(
    ['import', 'api', '--json', '--from', from, '--key-file', keyFile, '--project', project, ...more],
    server.env,
  )
}

const billing = () => ['--billing-from', shop.billingFrom, '--billing-key-file', shop.billingKeyFile]

async function copied(project: string, ...more: string[]) {
  const { code, stdout, stderr } = await run(project, ...more)
  assert.deepEqual(
    [code, stderr.replace(/^The import reads what changed since 20\S+Z: \d+ objects were read before\.\n$/, '')],
    [0, ''],
  )
  return JSON.parse(stdout)
}

test('a copy is equal by id and content, and the sums are', async () => {
  const target = await openTarget(shop, 'copy')
  await sleep(HORIZON_MS)
  const dry = await copied(target.id, ...billing(), '--dry-run')
  assert.deepEqual([dry.status, dry.rejected], ['dry_run', 0])
  assert.equal((await target.get('/profiles')).body.pagination.total, 0)
  const report = await copied(target.id, ...billing())
  assert.deepEqual([report.status, report.differences, report.rejects], ['done', [], []])
  assert.ok((await checkCopied(shop, target)) > 100)
  assert.deepEqual(
    dry.figures.map(({ source_count, source_sum }: never) => [source_count, source_sum]),
    report.figures.map(({ here_count, here_sum }: never) => [here_count, here_sum]),
  )
  // The dry run names as many payments without a customer, although no session is stored yet.
  assert.deepEqual(dry.missing, report.missing)
  // A charge finds the customer by the profile, whose id is the customer's where no file names another.
  const linked = await shop.server.db.query(
    'select count(*) as n from customers where project_id = $1 and profile_id = external_id',
    [target.id],
  )
  assert.ok(Number(linked[0]!.n) > 0)
})

test('the second run brings what changed since, as a feed, and erases who was erased there', async () => {
  const target = await openTarget(shop, 'changes')
  await sleep(HORIZON_MS)
  await copied(target.id)
  const [{ id }] = (await shop.source.get('/profiles')).body.data
  const other = (await shop.source.get('/profiles')).body.data[1].id
  await shop.server.db.query(
    `update profiles set country = 'IS', updated_at = db_clock() where project_id = $1 and id = $2`,
    [shop.source.id, other],
  )
  await shop.source.post('/profiles/anonymize', { profile_ids: [id] })
  const began = (await shop.server.db.query('select db_clock() as now'))[0]!.now!
  await sleep(HORIZON_MS)
  const report = await copied(target.id)
  assert.deepEqual([report.differences, report.rejects], [[], []])
  await checkCopied(shop, target, { without: ['updated_at', 'anonymized_at'], payments: false })
  const { body } = await target.get(`/profiles/${other}`)
  assert.equal(body.country, 'IS')
  assert.ok(new Date(body.updated_at) >= new Date(`${began.replace(' ', 'T')}:00`), 'stamped here')
  const ledger = await shop.server.db.query('select 1 from erasures where project_id = $1 and profile_id = $2', [
    target.id,
    id,
  ])
  assert.equal(ledger.length, 1)
})

test('who was merged there is merged here, and keeps what the other profile got', async () => {
  const { server, folder } = shop
  const [source, target] = [await server.project(), await openTarget(shop, 'merged')]
  const keyFile = join(folder, 'key-of-merged')
  writeFileSync(keyFile, source.key)
  const created_at = '2026-01-01T00:00:00Z'
  const records = [
    line.profile({ id: 'twin', created_at, email: 'ada@example.com' }),
    line.session({ id: 'visit', profile_id: 'twin', created_at, ip: '203.0.113.7' }),
    line.reply({ session_id: 'visit', value: 'calm' }),
    line.profile({ id: 'erased', created_at, email: 'eve@example.com' }),
    line.session({ id: 'erased', profile_id: 'erased', created_at }),
  ]
  assert.equal((await source.post('/records', { records })).status, 200)
  const read = async () => {
    await sleep(HORIZON_MS)
    return (await jsonOf(run(target.id, '--key-file', keyFile))).differences
  }
  await read()
  const customer = line.customer({ external_id: 'ada', profile_id: 'twin', email: 'ada@example.com' })
  await importLines(server, target.id, [customer])
  // The other one is new here, too.
  const other = line.profile({ id: 'ada', created_at, country: 'NO' })
  assert.equal((await source.post('/records', { records: [other] })).status, 200)
  const merged = await server.admin(`/projects/${source.id}/profiles/twin/merge/ada`, { method: 'POST' })
  assert.equal(merged.status, 200, merged.text)
  assert.equal((await source.post('/profiles/anonymize', { profile_ids: ['erased'] })).status, 200)
  assert.deepEqual(await read(), [])
  const here = async (path: string) => (await target.get(path)).body
  const { email, country, anonymized_at } = await here('/profiles/ada')
  assert.deepEqual([email, country, anonymized_at], ['ada@example.com', 'NO', null])
  assert.deepEqual(await server.db.query('select email, profile_id from customers where external_id = $1', ['ada']), [
    { email: 'ada@example.com', profile_id: 'ada' },
  ])
  await checkCopied({ ...shop, source: { ...source, organizationKey: '' } }, target, {
    ...{ without: ['updated_at', 'anonymized_at'], payments: false },
  })
  const erased = async () => {
    const found = 'select profile_id as id from erasures where project_id = $1 order by 1'
    return (await server.db.query(found, [target.id])).map(({ id }) => id)
  }
  assert.deepEqual(await erased(), ['erased'])
  // A person who was erased here stays erased, and so is the one who is merged into them there.
  const late = [line.profile({ id: 'late', created_at }), line.session({ id: 'late', profile_id: 'late', created_at })]
  assert.equal((await source.post('/records', { records: late })).status, 200)
  await read()
  assert.equal((await target.post('/profiles/anonymize', { profile_ids: ['ada'] })).status, 200)
  const path = `/projects/${source.id}/profiles/late/merge/ada`
  assert.equal((await server.admin(path, { method: 'POST' })).status, 200)
  await read()
  assert.deepEqual(await erased(), ['ada', 'erased', 'late', 'twin'])
})

test('what the service has lost is read again as it was before, and records that it lost are named', async () => {
  const { server, folder } = shop
  const target = await openTarget(shop, 'voided')
  const source = await openTarget(shop, 'lossy')
  const [keyFile, billingKeyFile] = [join(folder, 'key-of-lossy'), join(folder, 'billing-key-of-lossy')]
  writeFileSync(keyFile, source.key)
  writeFileSync(billingKeyFile, source.organizationKey)
  const paid = ['--billing-from', `${server.url}/lossy`, '--billing-key-file', billingKeyFile]
  const write = (id: string, country: string) =>
    source.post('/records', {
      records: [{ record: 'profile', data: { id, created_at: '2026-01-01T00:00:00Z', country } }],
    })
  const copyAll = async () => {
    await sleep(HORIZON_MS)
    const { code, stdout, stderr } = await run(target.id, '--key-file', keyFile, ...paid)
    assert.equal(code, 0, stderr)
    return { stderr, differences: JSON.parse(stdout).differences }
  }
  const trx_ids = [randomUUID(), randomUUID()]
  const payments = trx_ids.map((trx_id) => line.payment({ external_id: 'kept', trx_id }))
  await importLines(server, source.id, payments)
  await write('kept', 'DE')
  await copyAll()
  const [before] = await server.db.query('select updated_at, db_clock() as now from profiles where project_id = $1', [
    source.id,
  ])
  await write('kept', 'NZ')
  await write('lost', 'NZ')
  await copyAll()
  assert.equal((await target.get('/profiles/kept')).body.country, 'NZ')
  // As after a restored backup.
  await server.db.query(`delete from profiles where project_id = $1 and id = 'lost'`, [source.id])
  await server.db.query(`delete from report_transactions where organization_id = 'lossy' and trx_id = $1`, [
    trx_ids[0]!,
  ])
  await server.db.query(`update profiles set country = 'DE', updated_at = $2 where project_id = $1`, [
    source.id,
    before!.updated_at!,
  ])
  await server.db.query(
    `update project_clocks set void_from = $2, void_until = db_clock() + interval '1 hour' where project_id = $1`,
    [source.id, before!.now!],
  )
  const { stderr, differences } = await copyAll()
  assert.match(stderr, /\/public\/v1 has lost its changes since 20\S+Z: everything is read again\.\n$/)
  assert.match(differences[0], /^payments: sale succeeded \S+ USD: 1 of \S+ at the service, 2 of \S+ here\.$/)
  assert.deepEqual(differences.slice(1), [
    'profiles: 1 at the service, 2 here.',
    `2 records stay here that the service has lost (payment ${trx_ids[0]}, profile lost).`,
  ])
  assert.equal((await target.get('/profiles/kept')).body.country, 'DE')
})

test('1 and a sentence for a key of another project than the one that was read', async () => {
  const target = await openTarget(shop, 'mixed')
  await copied(target.id)
  const keyFile = join(shop.folder, 'key-of-another')
  const other = await shop.server.project()
  writeFileSync(keyFile, other.key)
  const { code, stderr } = await run(target.id, '--key-file', keyFile)
  assert.equal(code, 1)
  assert.match(
    stderr,
    new RegExp(
      `\nThis import is of the project "${shop.source.id}", and the key is of "${other.id}": give a key of .+\n$`,
    ),
  )
})

test('who was erased here does not come back', async () => {
  const target = await openTarget(shop, 'erased')
  await sleep(HORIZON_MS)
  await copied(target.id)
  const { id } = (await target.get('/profiles')).body.data.find(({ email }: { email: string | null }) => email !== null)
  await target.post('/profiles/anonymize', { profile_ids: [id] })
  await shop.server.db.query('delete from api_imports where project_id = $1', [target.id])
  const report = await copied(target.id)
  assert.ok(report.erased > 0)
  assert.equal((await target.get(`/profiles/${id}`)).body.email, null)
})

test('the file of customers says whose a payment is, and brings the tokens of cards', async () => {
  const target = await openTarget(shop, 'customers')
  const [row] = await shop.server.db.query(
    `select s.profile_id from report_transactions r
     join sessions s on s.project_id = $1 and s.id = r.meta_client_svc_session_id
     where r.organization_id = 'shop' and r.status = 'succeeded' limit 1`,
    [shop.source.id],
  )
  const file = join(shop.folder, 'customers.ndjson')
  const customer = { external_id: 'user 7', profile_id: row!.profile_id, payment_method_token: 'pm_card_visa' }
  const mistyped = { external_id: 'user 8', profile_id: 'pro_mistyped', payment_method_token: 'pm_card_visa' }
  writeFileSync(file, `${JSON.stringify(customer)}\n${JSON.stringify(mistyped)}\n`)
  await copied(target.id, ...billing())
  const { missing } = await copied(target.id, ...billing(), '--customers', file)
  assert.match(missing.at(-1), /^1 of 2 customers of the file have no payment here \("user 8"\): look at their /)
  const tokens = () =>
    shop.server.db.query(
      `select distinct payment_method_token as token from report_transactions
       where organization_id = $1 and external_id = 'user 7' and status = 'succeeded'`,
      [target.organizationId],
    )
  assert.deepEqual(await tokens(), [{ token: 'pm_card_visa' }])
  const linked = await shop.server.db.query(
    `select profile_id from customers where organization_id = $1 and external_id = 'user 7'`,
    [target.organizationId],
  )
  assert.deepEqual(linked, [{ profile_id: row!.profile_id }])
  // What another file does not name stays. This one was written on Windows.
  writeFileSync(file, `\ufeff${JSON.stringify(mistyped)}\r\n`)
  const last = await copied(target.id, ...billing(), '--customers', file)
  assert.deepEqual([last.differences, last.repeated], [[], 0])
  assert.deepEqual(await tokens(), [{ token: 'pm_card_visa' }])
})

test('one sentence for each refused import', async () => {
  const target = await openTarget(shop, 'refused')
  const wrong = join(shop.folder, 'wrong')
  writeFileSync(wrong, 'secret_wrong')
  const bad = join(shop.folder, 'bad.ndjson')
  writeFileSync(bad, '{"external_id":"a"}\n{"profile_id":"b"}\n')
  const base = ['import', 'api', '--project', target.id]
  const refused: [string[], number, RegExp][] = [
    [['--from', shop.from, '--key-file', wrong], 1, /rejects the key \(401\)\. It says: Unauthorized/],
    [['--from', 'ftp://x', '--key-file', wrong], 2, /^--from must be an address such as https/],
    [['--from', shop.from, '--key-file', wrong, '--billing-from', shop.from], 2, /belong together/],
    [['--from', shop.from, '--key-file', wrong, '--dry-run', '--follow'], 2, /exclude each other/],
    [['--from', `${shop.server.url}/nothing`, '--key-file', shop.keyFile], 1, /\/nothing\/funnels returned status 404/],
    [
      ['--from', shop.from, '--key-file', shop.keyFile, ...billing(), '--customers', bad],
      1,
      /bad\.ndjson:2: external_id is missing/,
    ],
  ]
  for (const [args, code, sentence] of refused) {
    const outcome = await tundishAgain([...base, ...args], shop.server.env)
    assert.match(outcome.stderr, sentence)
    assert.equal(outcome.stderr.trim().split('\n').length, 1)
    assert.equal(outcome.code, code, outcome.stderr)
  }
})
