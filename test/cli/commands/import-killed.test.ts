// tundish import, killed or interrupted: nothing is left of it, in the database or in the way of the next one.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnTundish } from '../../support/cli.ts'
import { untilLocked } from '../../support/database.ts'
import { line, type Project, textOf } from '../../support/imports.ts'
import { until } from '../../support/time.ts'
import { openImportCommand } from './import-command.ts'

// No machine is so busy that PostgreSQL needs longer to notice that a client is gone.
const PATIENCE_MS = 120_000

const { imports, folder, env, stop } = await openImportCommand()
after(stop)

/** Feeds lines without end to an import, until `stop` has ended it. */
async function feed(
  project: Project,
  stop: (child: ChildProcess) => void,
): Promise<{ code: number | null; signal: string | null; stderr: string }> {
  const child = spawnTundish(['import', '--project', project.id, '-'], env, ['pipe', 'ignore', 'pipe'])
  let stderr = ''
  child.stderr!.on('data', (text) => {
    stderr += text
  })
  child.stdin!.on('error', () => {})
  const ended = once(child, 'exit')
  let n = 0
  const feeding = setInterval(() => child.stdin!.write(textOf([line.profile({ id: `p${n++}` })]).repeat(200)), 10)
  await untilStaging(true)
  stop(child)
  const [code, signal] = await ended
  clearInterval(feeding)
  await untilStaging(false)
  return { code, signal, stderr }
}

function untilStaging(expected: boolean): Promise<void> {
  return until(expected ? 'the import to stage' : 'the import to end', async () => {
    const staged = await imports.rows(
      `select 1 from pg_stat_activity where datname = current_database() and query like 'copy import_profile%'`,
    )
    return staged.length > 0 === expected
  })
}

test('an import that is killed or interrupted while it reads leaves nothing behind', async () => {
  const fresh = await imports.project()
  const killed = await feed(fresh, (child) => child.kill('SIGKILL'))
  assert.equal(killed.signal, 'SIGKILL')
  const interrupted = await feed(fresh, (child) => child.kill('SIGINT'))
  assert.deepEqual(interrupted, { code: 1, signal: null, stderr: 'The import was aborted: nothing was written.\n' })
  assert.deepEqual(await imports.rows('select 1 from profiles where project_id = $1', [fresh.id]), [])
})

test('an import that is killed while it writes leaves nothing behind, and does not block the next one', async () => {
  const fresh = await imports.project()
  await imports.run(fresh, [line.profile({ id: 'locked' })])
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query('select 1 from profiles where project_id = $1 for update', [fresh.id])
  const path = join(folder, 'kill.ndjson')
  writeFileSync(path, textOf([line.funnel(), line.profile({ id: 'locked' }), line.profile()]))
  const child = spawnTundish(['import', '--project', fresh.id, path], env, 'ignore')
  await untilLocked(imports.db.query, 'import_concerned')
  child.kill('SIGKILL')
  await once(child, 'exit')
  // The lock is still held: the server has to notice by itself that its client is gone.
  const next = imports.run(fresh, [line.product()])
  assert.equal(await Promise.race([next.then(() => 'done'), sleep(PATIENCE_MS, 'stuck', { ref: false })]), 'done')
  await query('rollback')
  release()
  const left = await imports.rows(
    'select id from profiles where project_id = $1 union all select id from funnels where project_id = $1',
    [fresh.id],
  )
  assert.deepEqual(left, [{ id: 'locked' }])
})
