// The audit log finds whatever is done to it through the database.
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync } from 'node:fs'
import { after, beforeEach, test } from 'node:test'
import { type Actor, audited, auditHeadsPath } from '../../../src/core/audit/audit.ts'
import { appendHead, readHeads } from '../../../src/core/audit/heads.ts'
import { verifyAudit } from '../../../src/core/audit/verify.ts'
import { ApiError } from '../../../src/lib/errors.ts'
import { openEvents } from '../../support/events.ts'

const actor: Actor = { kind: 'operator key', id: 'key-1', source: '127.0.0.1' }
after(() => events.close())

const query = (text: string) => events.app.db.query(text)
const verify = () => verifyAudit(events.app.db, events.app.seal, auditHeadsPath(events.app.config))
async function act(action: string, app = events.app): Promise<void> {
  const entry = { action, target: 'project shop', after: { n: 1 } }
  for (;;) {
    try {
      return await audited(app, actor, async () => ({ entry, result: undefined }))
    } catch (error) {
      // On a busy machine the log refuses entries that have waited too long: nothing was written.
      if (!(error instanceof ApiError) || error.code !== 'audit_log_busy') throw error
    }
  }
}

// Ten entries, with a copy of the table to come back to.
const events = await openEvents()
for (let n = 1; n <= 10; n += 1) await act(`thing.done-${n}`)
await query('create table honest as table audit_log')
await query('create table honest_head as table audit_head')
beforeEach(async () => {
  await query('truncate audit_log')
  await query('insert into audit_log select * from honest')
  await query('update audit_head h set (sequence, hash) = (select sequence, hash from honest_head)')
  assert.deepEqual(await verify(), { entries: 10, known: 10, wrong: [] })
})

const TAMPERED: Record<string, string[]> = {
  'an entry was changed': [`update audit_log set after = '{"n": 2}' where sequence = 5`],
  'who did it was changed': [`update audit_log set actor = 'key-2' where sequence = 5`],
  'when was changed': [`update audit_log set at = at + interval '1 microsecond' where sequence = 5`],
  'an entry was removed': ['delete from audit_log where sequence = 5'],
  'an entry was removed and the rest moved up': [
    'delete from audit_log where sequence = 5',
    'update audit_log set sequence = sequence - 1 where sequence = 6',
    'update audit_log set sequence = sequence - 1 where sequence = 7',
    'update audit_log set sequence = sequence - 1 where sequence = 8',
    'update audit_log set sequence = sequence - 1 where sequence = 9',
    'update audit_log set sequence = sequence - 1 where sequence = 10',
    'update audit_head set sequence = 9',
  ],
  'the newest was removed, the head put back': [
    'delete from audit_log where sequence = 10',
    'update audit_head set (sequence, hash) = (select sequence, hash from audit_log where sequence = 9)',
  ],
  'an entry was put in at the end': [
    'insert into audit_log select 11, at, actor_kind, actor, source, action, target, before, after, hash from honest where sequence = 10',
    'update audit_head set sequence = 11',
  ],
  'an entry was put in between': [
    'update audit_log set sequence = 11 where sequence = 10',
    'insert into audit_log select 10, at, actor_kind, actor, source, action, target, before, after, hash from honest where sequence = 3',
    'update audit_head set sequence = 11',
  ],
  'two entries changed places': [
    'update audit_log set sequence = 99 where sequence = 4',
    'update audit_log set sequence = 4 where sequence = 5',
    'update audit_log set sequence = 5 where sequence = 99',
  ],
  'the whole log was emptied': [
    'truncate audit_log',
    `update audit_head set sequence = 0, hash = decode(repeat('00', 32), 'hex')`,
  ],
  'the head was moved': ['update audit_head set sequence = 12'],
}

for (const [what, statements] of Object.entries(TAMPERED)) {
  test(`found: ${what}`, async () => {
    for (const statement of statements) await query(statement)
    assert.notDeepEqual((await verify()).wrong, [])
  })
}

test('an entry and its change are both committed, or neither', async () => {
  const failing = audited(events.app, actor, async (inTransaction) => {
    await inTransaction(`insert into instance (name, value) values ('half', 'done')`)
    throw new Error('halfway')
  })
  await assert.rejects(failing, /halfway/)
  assert.deepEqual(await query(`select 1 from instance where name = 'half'`), [])
  assert.deepEqual((await verify()).wrong, [])
})

test('an entry that was announced and not committed is not reported as missing', async () => {
  const line = JSON.stringify({ sequence: '11', hash: 'ab'.repeat(32), committed: false })
  appendFileSync(auditHeadsPath(events.app.config), `${line}\n{"sequence":"12","ha`)
  assert.deepEqual((await verify()).wrong, [])
  appendFileSync(auditHeadsPath(events.app.config), '\n')
})

test('a head behind a line that a full disk cut off is known', async () => {
  const path = `${auditHeadsPath(events.app.config)}.torn`
  appendFileSync(path, '{"sequence":"12","ha')
  await appendHead(path, { sequence: '12', hash: 'ab'.repeat(32), committed: false })
  assert.deepEqual([...(await readHeads(path)).keys()], ['12'])
})

test('the key of the chain is not in the database: with another master key the log is invalid', async () => {
  const { openSeal } = await import('../../../src/lib/secrets.ts')
  const stranger = openSeal(Buffer.alloc(32, 7))
  const verdict = await verifyAudit(events.app.db, stranger, auditHeadsPath(events.app.config))
  assert.equal(verdict.wrong.length, 10)
  assert.ok(!readFileSync(auditHeadsPath(events.app.config), 'utf8').includes('project shop'))
})

test('entries added by several processes at once are one chain', async () => {
  const other = await events.another({ DATA_DIR: `${events.dataDir}/other` })
  // The test above announced an entry 11 here that came to nothing: the number is another machine's now.
  await act('first.elsewhere', other)
  assert.deepEqual((await verify()).wrong, [])
  await Promise.all(Array.from({ length: 20 }, (_, n) => act(`both.${n}`, n % 2 ? other : events.app)))
  const verdict = await verify()
  assert.deepEqual([verdict.entries, verdict.wrong], [31, []])
  assert.ok(verdict.known >= 20)
  const theirs = await verifyAudit(other.db, other.seal, auditHeadsPath(other.config))
  assert.deepEqual([theirs.known, theirs.wrong], [11, []])
})
