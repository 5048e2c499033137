// The embedded PostgreSQL on a full disk: one sentence, and well again with room.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { Home } from '../../../src/lib/embedded/home.ts'
import { outputSentence } from '../../../src/lib/embedded/sentences.ts'
import { trimLog } from '../../../src/lib/embedded/server.ts'
import { UsageError } from '../../../src/lib/errors.ts'
import { writeNew } from '../../../src/lib/new-file.ts'
import { succeeded, tundish } from '../../support/cli.ts'
import { fill, mountSmallDisk } from '../../support/small-disk.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'
import { base, clusterOf, firstValue, isStopped, open, pidOf } from './embedded.ts'

const disk = mountSmallDisk(120)
const NO_SPACE = /^There is no space left on the disk of .+: free some/

describe(titled('one sentence for a full disk, and well again with room', disk.why), { skip: disk.why }, () => {
  const { folder } = disk
  const [dataDir, filler] = [join(folder, 'data'), join(folder, 'filler')]
  after(disk.unmount)

  test('in the middle of a write', () => {
    const output = 'FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes at block 9'
    assert.match(outputSentence(output, 'start', { dataDir: base, logFile: '' }).message, NO_SPACE)
  })

  // One has no room for the database, the other none for its tables.
  for (const megabytes of [20, 48]) {
    test(`at a first start with ${megabytes} MB`, async () => {
      const small = mountSmallDisk(megabytes)
      const migrate = () => tundish(['migrate'], { DATA_DIR: join(small.folder, 'data') })
      const { code, stderr } = await migrate()
      assert.match(stderr, NO_SPACE)
      assert.equal(code, 2)
      execFileSync('mount', ['-o', 'remount,size=300m', small.folder])
      await succeeded(migrate())
      small.unmount()
    })
  }

  test('for a key, with the name of its file', () => {
    const file = join(folder, 'key')
    fill(filler)
    assert.throws(() => writeNew(file, 'a key'), { code: 'ENOSPC', path: file })
    assert.deepEqual(globSync(`${file}*`), [])
    rmSync(filler)
  })

  test('for the copy of a long log, which is trimmed later', () => {
    const home = { logFile: join(folder, 'postgres.log') } as Home
    writeFileSync(home.logFile, Buffer.alloc(9 * 1024 * 1024))
    fill(filler)
    trimLog(home)
    assert.equal(existsSync(`${home.logFile}.1`), false)
    rmSync(filler)
    trimLog(home)
    assert.deepEqual([statSync(home.logFile).size, statSync(`${home.logFile}.1`).size], [0, 9 * 1024 * 1024])
    for (const file of globSync(`${home.logFile}*`)) rmSync(file)
  })

  test('while PostgreSQL runs', async () => {
    const { url, close } = await open(dataDir)
    // PostgreSQL writes these for the first connection after a change of the catalog.
    for (const file of globSync(join(clusterOf(dataDir), '**/pg_internal.init'))) rmSync(file)
    fill(filler)
    await assert.rejects(open(dataDir), (error) => error instanceof UsageError && NO_SPACE.test(error.message))
    rmSync(filler)
    await (await open(dataDir)).close()
    assert.equal(await firstValue(url, 'select 1'), '1')
    await close()
  })

  test('when PostgreSQL has stopped, and cannot write its lock file', { timeout: 60_000 }, async () => {
    const warnings: string[] = []
    const { url, close } = await open(dataDir, { log: { info() {}, warn: (line) => warnings.push(line) } })
    fill(filler)
    process.kill(pidOf(dataDir), 'SIGINT')
    // This process does not start it again before the room of the old lock file is taken.
    for (const endMs = performance.now() + 60_000; !isStopped(dataDir) && performance.now() < endMs; );
    fill(`${filler}-2`)
    await until('the warning', () => warnings.some((line) => NO_SPACE.test(line)))
    // It is tried again every second, not at once.
    const tries = readFileSync(join(dataDir, 'postgres.log'), 'utf8').match(/could not write lock file/g) ?? []
    assert.ok(tries.length < 10, `${tries.length} tries`)
    rmSync(filler)
    await until('the server', async () => (await firstValue(url, 'select 1').catch(() => '')) === '1')
    await close()
  })
})
