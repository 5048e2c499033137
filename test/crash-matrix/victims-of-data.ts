// Files to import, counts and figures to compute, persons to erase, and a backup to restore.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { auditHeadsPath } from '../../src/core/audit/audit.ts'
import { verifyAudit } from '../../src/core/audit/verify.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { checkFigures } from '../../src/operator/doctor/figures.ts'
import { checkLedgers } from '../../src/operator/doctor/records.ts'
import { fill, install, kept } from '../operations/backup/installations.ts'
import type { Ground, Victim } from './victim.ts'
import { doWork, type Subject } from './works.ts'

const RECORDS = 60

const record = (record: string, data: object) => `${JSON.stringify({ record, data })}\n`
const at = (n: number) => new Date(Date.UTC(2026, 0, 1 + (n % 20))).toISOString()

/** Records of a project as a file: each profile with a transaction. */
function fileOf(): string {
  return Array.from({ length: RECORDS }, (_, n) => {
    const profile = record('profile', { id: `p${n}`, created_at: at(n), email: `p${n}@example.com` })
    const money = { currency: 'USD', price: 100 + n, profile_id: `p${n}` }
    return profile + record('transaction', { id: `t${n}`, created_at: at(n), ...money })
  }).join('')
}

export async function unimported({ billing }: Ground, live: boolean): Promise<Victim> {
  const { db } = billing
  const { projectId: project } = await billing.organization()
  const count = async () => {
    const [row] = await db.query(
      `select (select count(*) from profiles where project_id = $1) as p,
         (select count(*) from transactions where project_id = $1) as t`,
      [project],
    )
    return [Number(row!.p), Number(row!.t)]
  }
  return {
    subject: { project, text: fileOf(), live: String(live) },
    async afterKill() {
      const [profiles, transactions] = await count()
      assert.ok(profiles === 0 || profiles === RECORDS, `${profiles} profiles are left of an import`)
      assert.equal(transactions, profiles)
    },
    async checkResult() {
      assert.deepEqual(await count(), [RECORDS, RECORDS])
      assert.deepEqual(await counted(db, project), [RECORDS, RECORDS])
    },
  }
}

/** The totals of profiles and of transactions in the counters. */
async function counted(db: Db, project: string): Promise<number[]> {
  const rows = await db.query(
    `select sum(n) as n from counts where project_id = $1 and field = '' and list = any('{profiles,transactions}')
     group by list order by list`,
    [project],
  )
  return rows.map(({ n }) => Number(n))
}

const bad = (findings: { level: string; message: string }[]) =>
  findings.filter(({ level }) => level !== 'ok').map(({ message }) => message)

/** A project whose counters and figures were not updated since an import. */
export async function unswept(ground: Ground, work: 'counts' | 'figures'): Promise<Victim> {
  const { billing } = ground
  const { subject } = await unimported(ground, false)
  await doWork('import', billing.server.env, subject)
  return {
    subject,
    async afterKill() {
      assert.deepEqual(await counted(billing.db, subject.project!), [RECORDS, RECORDS])
    },
    async checkResult() {
      assert.deepEqual(await counted(billing.db, subject.project!), [RECORDS, RECORDS])
      if (work === 'counts') return
      assert.deepEqual(bad(await checkFigures(billing.db)), [])
      const [row] = await billing.db.query('select count(*) as n from figure_marks where project_id = $1', [
        subject.project!,
      ])
      assert.equal(row!.n, '0', 'days are left to compute')
    },
  }
}

export async function unerased({ billing, shop }: Ground): Promise<Victim> {
  const { db, server } = billing
  const profile = `pro_${randomUUID()}`
  await shop.customer({ profileId: profile })
  await db.query(`update profiles set email = 'ada@example.com', email_folded = 'ada@example.com' where id = $1`, [
    profile,
  ])
  const isErased = async () => {
    const [row] = await db.query('select anonymized_at, email from profiles where id = $1', [profile])
    assert.equal(row!.email === null, row!.anonymized_at !== null, 'a part of a person is left')
    return row!.email === null
  }
  const agree = async () => {
    const { app, ledger } = server
    assert.deepEqual(
      bad(await checkLedgers(db, ledger)).filter((message) => /lacks/.test(message) && /^\//.test(message)),
      [],
    )
    assert.deepEqual((await verifyAudit(db, app.seal, auditHeadsPath(app.config))).wrong, [])
  }
  return {
    subject: { project: shop.projectId, profile },
    async afterKill() {
      await isErased()
      await agree()
    },
    async checkResult() {
      assert.ok(await isErased())
      await agree()
      const [entry] = await db.query('select 1 as one from erasures where profile_id = $1', [profile])
      assert.ok(entry, 'the ledger has it')
    },
  }
}

export async function unrestored({ source, backup }: Ground): Promise<Victim> {
  const target = await install()
  const { db, env, ledger } = target
  const rows = async () => Number((await db.query('select count(*) as n from profiles'))[0]!.n)
  const whole = await kept(source.db)
  return {
    subject: { ...(env as Subject), file: backup, ledger: source.ledger },
    async afterKill() {
      const n = await rows()
      assert.ok(n === 0 || n === whole.profiles!.length, `${n} profiles are left of a restore`)
    },
    async checkResult() {
      assert.ok(ledger.length > 0)
      assert.deepEqual(await kept(db), whole)
    },
    remove: target.remove,
  }
}

/** Fills an installation and makes a backup of it. */
export async function makeBackup(): Promise<Pick<Ground, 'source' | 'backup'>> {
  const source = await install()
  await fill(source)
  const backup = join(source.folder, 'crash.backup')
  writeFileSync(source.ledger, '')
  await source.json('backup', backup)
  return { source, backup }
}
