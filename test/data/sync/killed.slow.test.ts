// tundish sync is killed again and again while the project changes: the copy is equal to it at the end.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnTundish, tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Project, startTestServer } from '../../support/server.ts'
import { readerOf } from './copies.ts'
import { checkEqual, filled, PROFILES, syncEnv } from './source.ts'

const server = await startTestServer()
const folder = temporaryFolder()
after(() => server.stop())

test('a run that is killed again and again loses nothing and repeats nothing', async () => {
  const project = await filled(server)
  const target = `sqlite:${join(folder, 'killed.sqlite')}`
  const writing = new AbortController()
  const writer = write(project, writing.signal)
  for (let kills = 0; kills < 8; kills += 1) {
    const child = spawnTundish(['sync', '--to', target], syncEnv(server, project), 'ignore')
    const ended = new Promise((resolve) => child.once('exit', resolve))
    // Until it has opened the copy, then a moment that differs each time.
    while (!existsSync(join(folder, 'killed.sqlite'))) await sleep(5)
    await sleep(200 + kills * 60)
    child.kill('SIGKILL')
    await ended
  }
  writing.abort()
  await writer
  // The horizon may lag by a second. The first run ends the walk that was killed, the second brings what came after it.
  for (let run = 0; run < 2; run += 1) {
    await sleep(1100)
    const { code, stderr } = await tundish(['sync', '--json', '--to', target], syncEnv(server, project))
    assert.equal(code, 0, stderr)
  }
  await checkEqual(server, project, readerOf(target))
})

async function write(project: Project, signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n += 1) {
    await server.db.tx(async (query) => {
      await query('select begin_write($1)', [project.id])
      await query(
        `update profiles set country = $2, updated_at = greatest(db_clock(), updated_at + interval '1 microsecond')
         where project_id = $1 and id = $3`,
        [project.id, n % 2 === 0 ? 'DE' : 'FR', `p-${(n * 37) % PROFILES}`],
      )
    })
  }
}
