// The sync promise on a replica: windows miss nothing and repeat nothing while slow writers commit, the replay stops and goes on,
// and every page may come from another process, one with the replica, one without.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openReplicated, readsOf, seenBy } from '../../../support/replica.ts'
import type { Project } from '../../../support/server.ts'
import { Follower, Written, writeSlowly } from '../follower.ts'

const WRITING_MS = 6000
const LONG = 300_000

const scene = await openReplicated()
after(() => scene.close())

test('a sync by windows from a replica', { timeout: 600_000 }, async () => {
  const reader = await scene.serve(LONG)
  const other = await scene.serve()
  const project = await other.project()
  await scene.replica.catchUp()
  let turn = 0
  const alternating: Pick<Project, 'get'> = {
    get: (path, query) => seenBy(++turn % 3 === 0 ? other : reader, project).get(path, query),
  }
  const written = new Written()
  const followers = [new Follower(seenBy(reader, project)), new Follower(alternating)]
  const open = new Follower(alternating)
  let writing = false
  const write = async (...names: string[]) => {
    writing = true
    await writeSlowly(scene.primary.url, project.id, written, names, WRITING_MS).finally(() => {
      writing = false
    })
  }
  const follow = async (step: () => Promise<void>) => {
    while (writing) {
      await step()
      await sleep(10)
    }
  }
  const stumble = async () => {
    while (writing) {
      await sleep(150)
      await scene.replica.pause()
      await sleep(Math.random() * 500)
      await scene.replica.resume()
    }
  }
  const reads: string[] = []
  const share = (name: string) => reads.filter((one) => one === name).length
  const during = async (work: () => Promise<unknown>) => void reads.push(...(await readsOf(reader, work)))
  // A busy machine reads less in the same time. With less the test would say nothing of the replica.
  for (let n = 0; share('replica fresh') <= 40 || share('primary late') + share('primary walk') === 0; n++)
    await during(() =>
      Promise.all([
        write(`a${n}`, `b${n}`, `c${n}`),
        ...followers.map((one) => follow(() => one.step())),
        follow(() => open.openStep()),
        stumble(),
      ]),
    )
  for (const one of followers) await one.catchUp(written)
  await open.openStep()
  assert.ok(written.all.size > 60, `Only ${written.all.size} changes were written.`)
  for (const one of followers) one.check(written)
  assert.deepEqual(open.missing(written), [], 'Changes were missed by windows without an end.')
})
