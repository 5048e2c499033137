// An import of the whole demo account: equal to the account, also when it is killed at twenty random moments and run again.
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithTest, spawnTundish } from '../../../support/cli.ts'
import { untilUnlocked } from '../../../support/database.ts'
import { temporaryFolder } from '../../../support/folder.ts'
import type { Project } from '../../../support/imports.ts'
import { TEST_KEY } from '../../../support/simulators.ts'
import { until } from '../../../support/time.ts'
import {
  accountFees,
  accountSums,
  openStripeImports,
  reportedFees,
  storedRecords,
  storedSums,
} from './stripe-imports.ts'

// An import that takes longer than a few kills.
const CUSTOMERS = 1000
const KILLS = 20

const all = await openStripeImports({ demoCustomers: CUSTOMERS })
const folder = temporaryFolder()
writeFileSync(join(folder, 'key'), TEST_KEY)
const env: Record<string, string> = {
  DATABASE_URL: all.imports.url,
  DATA_DIR: folder,
  MASTER_KEY: randomBytes(32).toString('base64'),
  STRIPE_API_URL: all.simulator.url,
}
const account: string[] = await accountSums(all.stripe)
after(() => all.close())

const commandFor = ({ id, organizationId }: Project) => [
  ...['import', 'stripe', '--json', '--org', organizationId, '--project', id, '--key-file', join(folder, 'key')],
]

function start(project: Project, stderr: 'inherit' | 'ignore' = 'inherit') {
  return spawnTundish(commandFor(project), env, ['ignore', 'pipe', stderr])
}

/** Runs the command to its end, and returns its report. */
async function runToEnd(project: Project) {
  const child = start(project)
  const [report] = await Promise.all([text(child.stdout!), once(child, 'exit')])
  assert.equal(child.exitCode, 0)
  return JSON.parse(report)
}

/** Runs the command and kills it at a random moment; returns whether it was killed before its end. */
async function runAndKill(project: Project): Promise<boolean> {
  const child = start(project)
  child.stdout!.resume()
  const ended = once(child, 'exit')
  // Some die before they begin, some within a batch, some between two.
  await Promise.race([sleep(randomInt(700, 4000)), ended])
  child.kill('SIGKILL')
  const [, signal] = await ended
  return signal === 'SIGKILL'
}

const recordsOf = ({ organizationId, id }: Project) => storedRecords(all.imports.db, organizationId, id)

test('at once, and killed twenty times: the same records, and the sums of the account', {
  timeout: 1_200_000,
}, async () => {
  const [whole, killed] = [await all.imports.project(), await all.imports.project()]
  const report = await runToEnd(whole)
  assert.deepEqual([report.status, report.differences, report.rejected], ['done', [], 0])
  assert.deepEqual(await storedSums(all, whole), account)
  let kills = 0
  // One that got to its end begins anew at the next run.
  while (kills < KILLS) if (await runAndKill(killed)) kills += 1
  await untilUnlocked(all.imports.db.query, 7487)
  const last = await runToEnd(killed)
  assert.deepEqual([last.status, last.differences, last.rejected], ['done', [], 0])
  assert.deepEqual(last.figures, report.figures)
  assert.deepEqual(await storedSums(all, killed), account)
  const fees = await accountFees(all.stripe)
  for (const project of [whole, killed]) {
    assert.deepEqual(await reportedFees(all, project, env['MASTER_KEY']), fees)
  }
  assert.deepEqual(await recordsOf(killed), await recordsOf(whole))
})

test('a process that is frozen does not keep its import from another one', { timeout: 600_000 }, async (t) => {
  const project = await all.imports.project()
  const frozen = start(project)
  t.after(() => frozen.kill('SIGKILL'))
  endWithTest(frozen)
  const report = text(frozen.stdout!)
  const isBegun = () =>
    all.imports.rows(`select from stripe_imports where project_id = $1 and (tally ->> 'read')::int > 0`, [project.id])
  await until('the import to begin', async () => (await isBegun()).length > 0)
  frozen.kill('SIGSTOP')
  // Programs that try until then would take more CPU than all else here.
  await untilUnlocked(all.imports.db.query, 7487)
  const isImported = async () => {
    const child = start(project, 'ignore')
    child.stdout!.resume()
    const [code] = await once(child, 'exit')
    return code === 0
  }
  await until('another process to import', isImported, 400_000)
  frozen.kill('SIGCONT')
  const [code] = await once(frozen, 'exit')
  assert.deepEqual([code, await report], [1, ''])
  assert.deepEqual(await storedSums(all, project), account)
})
