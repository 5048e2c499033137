// tundish import api is killed twenty times while the source changes: the copy is equal to it at the end. API_PEOPLE is the number of
// people of the source (400); `npm run test:deep copies` takes 30,000.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnTundish, tundish } from '../../../support/cli.ts'
import { untilUnlocked } from '../../../support/database.ts'
import { checkCopied, openShop, openTarget, untilExported } from './api-imports.ts'

const PEOPLE = Number(process.env['API_PEOPLE'] ?? 400)
const KILLS = 20

const shop = await openShop(PEOPLE)
after(() => shop.stop())

test('a copy during writes that is killed twenty times loses nothing and counts nothing twice', async () => {
  const target = await openTarget(shop, 'killed')
  const { from, keyFile, billingFrom, billingKeyFile, server } = shop
  const billing = ['--billing-from', billingFrom, '--billing-key-file', billingKeyFile]
  const args = ['import', 'api', '--json', '--from', from, '--key-file', keyFile, '--project', target.id, ...billing]
  const writing = new AbortController()
  const writer = write(writing.signal)
  let whole = 0
  for (let kills = 0; kills < KILLS; kills += 1) {
    const before = await placeOf(target.id)
    const child = spawnTundish(args, server.env, 'ignore')
    const ended = new Promise((resolve) => child.once('exit', resolve))
    // Until it has stored something, or has ended; then a moment that differs each time.
    while (child.exitCode === null && (await placeOf(target.id)) === before) await sleep(5)
    await sleep(kills * 13 * Math.max(1, PEOPLE / 400))
    if (child.exitCode !== null) whole += 1
    child.kill('SIGKILL')
    await ended
  }
  assert.ok(whole < KILLS, 'no run was killed')
  writing.abort()
  await writer
  await untilUnlocked(server.db.query, 7487)
  // The first run ends the pass that was killed, the second brings what came behind it.
  let last = { code: 0 as number | null, stdout: '', stderr: '' }
  for (let [ended, run] = [0, 0]; ended < 2; run += 1) {
    await untilExported(server, shop.source)
    last = await tundish(args, server.env)
    // With many people a run may outlast the patience of the test, which interrupts it.
    if (/The import was interrupted\./.test(last.stderr) && run < PEOPLE / 2000) continue
    assert.equal(last.code, 0, last.stderr)
    ended += 1
  }
  const { differences, rejects, repeated } = JSON.parse(last.stdout)
  assert.deepEqual([differences, rejects, repeated], [[], [], 0])
  await checkCopied(shop, target, { without: ['updated_at'] })
})

async function placeOf(project: string): Promise<string> {
  const [row] = await shop.server.db.query('select place || notes as place from api_imports where project_id = $1', [
    project,
  ])
  return row?.place ?? ''
}

/** Changes profiles of the source, one after the other. */
async function write(signal: AbortSignal): Promise<void> {
  const ids = (await shop.source.get('/profiles', { limit: '500' })).body.data.map(({ id }: { id: string }) => id)
  for (let n = 0; !signal.aborted; n += 1) {
    await shop.server.db.tx(async (query) => {
      await query('select begin_write($1)', [shop.source.id])
      await query(
        `update profiles set country = $2, updated_at = greatest(db_clock(), updated_at + interval '1 microsecond')
         where project_id = $1 and id = $3`,
        [shop.source.id, n % 2 === 0 ? 'DE' : 'FR', ids[(n * 37) % ids.length]],
      )
    })
    await sleep(20)
  }
}
