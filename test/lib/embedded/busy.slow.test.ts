// The embedded PostgreSQL on a machine that leaves it hardly any time: it is waited for, and what for is logged.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openEmbedded } from '../../../src/lib/embedded/embedded.ts'
import { lastServer } from '../../../src/lib/embedded/server.ts'

// A frozen server is what one looks like that gets no time at all.
const FROZEN_MS = 20_000

for (const [moment, reached] of [
  ['at its start', (cluster: string) => lastServer(cluster) !== undefined],
  ['when it listens', (cluster: string) => Boolean(lastServer(cluster)?.sockets)],
] as const) {
  test(`a server that is frozen for 20 s ${moment} is waited for`, { timeout: 240_000 }, async () => {
    // The server may be ready before it is frozen.
    let said: string[] | undefined
    for (let tries = 0; tries < 20 && !said; tries += 1) said = await openFrozen(reached)
    assert.match(said![0]!, /^Making the database in .*\. This takes some seconds, and minutes on a busy machine\.$/)
    assert.ok(
      said!.some((line) => /^Still waiting for PostgreSQL after 5 s: .+\.$/.test(line)),
      said!.join('\n'),
    )
  })
}

/** What is logged while a server opens that is frozen at this moment; undefined if it was ready by then. */
async function openFrozen(reached: (cluster: string) => boolean): Promise<string[] | undefined> {
  const base = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-busy-'))
  // As root, PostgreSQL's account has to pass.
  chmodSync(base, 0o711)
  const dataDir = join(base, 'data')
  const cluster = join(dataDir, 'postgres/data')
  const said: string[] = []
  const log = { info: (line: string) => said.push(line), warn: (line: string) => said.push(line) }
  let isReady = false
  const opening = openEmbedded({ dataDir, log, throwaway: true }).finally(() => {
    isReady = true
  })
  // Often: it is ready within less than a tenth of a second.
  while (!reached(cluster)) await sleep(1)
  const { pid } = lastServer(cluster)!
  process.kill(pid, 'SIGSTOP')
  await sleep(1000)
  const wasReady = isReady
  if (!wasReady) await sleep(FROZEN_MS)
  process.kill(pid, 'SIGCONT')
  await (await opening).close()
  rmSync(base, { recursive: true, force: true })
  return wasReady ? undefined : said
}
