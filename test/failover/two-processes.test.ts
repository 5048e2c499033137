// Commits that a database has lost are noticed by the process that knew them, also when another one looked first.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tundish } from '../support/cli.ts'
import { freshDatabase } from '../support/postgres.ts'
import { openProxy } from '../support/proxy.ts'
import { type Json, startTestServer, type TestServer } from '../support/server.ts'
import { until } from '../support/time.ts'

const found = async ({ env }: TestServer) => {
  const { stdout } = await tundish(['doctor', '--json'], env)
  const findings: Json[] = JSON.parse(stdout).findings.filter(({ check }: Json) => check === 'failover')
  return findings.map(({ level, message }) => `${level}: ${message.replace(/\d\S+Z/, 'TIME')}`)
}
const numberIn = async ({ db }: TestServer) =>
  Number((await db.query('select number from commit_beat'))[0]?.['number'] ?? -1)

/**
 * A process that knows the heartbeat 1000 loses its database; when the heartbeat is as `set` makes it, another process starts and
 * looks, until `seen`. Then the first one has its database back.
 */
async function lose(set: string, seen: (second: TestServer) => Promise<boolean>): Promise<string[]> {
  const database = await freshDatabase()
  const proxy = await openProxy(database.url)
  const first = await startTestServer({ DATABASE_URL: proxy.url })
  try {
    await until('a heartbeat', async () => (await numberIn(first)) >= 0)
    await first.db.query('update commit_beat set number = 1000')
    // It writes the second when the first is confirmed to it.
    await until('two heartbeats after it', async () => (await numberIn(first)) >= 1002)
    await proxy.cut()
    const second = await startTestServer({ ...first.env, DATABASE_URL: database.url }, { worker: false })
    await second.db.query(`update commit_beat set ${set}`)
    const worker = await startTestServer({ ...first.env, DATABASE_URL: database.url })
    try {
      await until('the second process to look', () => seen(worker))
      await proxy.mend()
      const isCertain = () => worker.db.query(`select from failovers where loss = 'certain'`)
      await until('the loss to be certain', async () => (await isCertain()).length === 1)
      return await found(worker)
    } finally {
      await worker.stop()
      await second.stop()
    }
  } finally {
    await first.stop()
    await proxy.cut()
    await database.drop()
  }
}

const LOST = 'failed: A failover lost commits that were made after TIME.'

test('after a crash that lost commits on the same timeline, when a new process has written the next heartbeat', async () => {
  const seen = async (second: TestServer) => (await numberIn(second)) > 5
  assert.deepEqual(await lose('number = 5', seen), [LOST])
})

test('after a failover that a process which knew less has recorded as a possible loss', async () => {
  const seen = async (second: TestServer) => {
    const isPossible = (await found(second)).some((one) => one.startsWith('warning: A failover may have lost commits'))
    // Its heartbeats since have passed the one that the first process knew.
    if (isPossible) await second.db.query('update commit_beat set number = 2000')
    return isPossible
  }
  assert.deepEqual(await lose('number = 5, timeline = timeline + 1, waits = false', seen), [LOST])
})
