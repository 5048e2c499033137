// The embedded PostgreSQL on a machine that leaves it hardly any time: it is waited for, and what for is logged.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openEmbedded } from '../../../src/lib/embedded/embedded.ts'
import { lastServer } from '../../../src/lib/embedded/server.ts'
import { until } from '../../support/cluster.ts'

// A frozen server is what one looks like that gets no time at all.
const FROZEN_MS = 20_000

for (const [moment, reached] of [
  ['at its start', (cluster: string) => lastServer(cluster) !== undefined],
  ['when it listens', (cluster: string) => lastServer(cluster)?.sockets !== undefined],
] as const) {
  test(`a server that is frozen for 20 s ${moment} is waited for`, { timeout: 120_000 }, async () => {
    const base = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-busy-'))
    // As root, PostgreSQL's account has to pass.
    chmodSync(base, 0o711)
    const dataDir = join(base, 'data')
    const cluster = join(dataDir, 'postgres/data')
    const said: string[] = []
    const log = { info: (line: string) => said.push(line), warn: (line: string) => said.push(line) }
    const opening = openEmbedded({ dataDir, log, throwaway: true })
    await until(`the server is ${moment}`, () => reached(cluster))
    const { pid } = lastServer(cluster)!
    process.kill(pid, 'SIGSTOP')
    await sleep(FROZEN_MS)
    process.kill(pid, 'SIGCONT')
    const embedded = await opening
    await embedded.close()
    rmSync(base, { recursive: true, force: true })
    assert.match(said[0]!, /^Making the database in .*\. This takes some seconds, and minutes on a busy machine\.$/)
    assert.match(said[1]!, /^Still waiting for PostgreSQL after 5 s: .+\.$/)
  })
}
