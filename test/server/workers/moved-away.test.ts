// Background work whose organization is moved away under it: no error in the log.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

test('work for an organization that is gone is one line at level 30, without a code of the database', async () => {
  const server = await startTestServer()
  try {
    // As it is seen by a transaction that began before the move removed the organization.
    await server.db.tx(async (query) => {
      await query(`set local session_replication_role = replica`)
      await query(`insert into organization_clocks values ('gone', db_clock())`)
    })
    const found = () => server.logLines().find((line) => line.includes('moved to another shard'))
    await until('the line', () => found() !== undefined)
    const { level, msg, err, work } = JSON.parse(found()!)
    assert.deepEqual(
      { level, msg, err, work },
      {
        level: 30,
        msg: 'Work ended because its organization has been moved to another shard.',
        err: undefined,
        work: 'figures',
      },
    )
    assert.ok(!server.logLines().some((line) => line.includes('23503')))
  } finally {
    await server.stop()
  }
})
