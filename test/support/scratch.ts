// The folder of a test run: its database server, its browser and, in memory if there is room, the temporary files of its tests.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const PREFIX = 'tundish-test-'

const MEMORY = '/dev/shm'
// Many times the size of the files of quick tests.
const ROOM = 4 * 2 ** 30

/** The folders in which runs create theirs. */
export const bases = (): string[] => [realpathSync(tmpdir()), ...(existsSync(MEMORY) ? [MEMORY] : [])]

export const makeScratch = (): string => inMemory() ?? makeIn(realpathSync(tmpdir()))

/** A test's database has 600 files, whose copying takes half a second of CPU on some disks. */
function inMemory(): string | undefined {
  if (!process.env['TUNDISH_TEST_IN_MEMORY'] || !existsSync(MEMORY)) return undefined
  const { bavail, bsize } = statfsSync(MEMORY)
  if (Math.min(bavail * bsize, process.availableMemory()) < ROOM) return undefined
  const folder = makeIn(MEMORY)
  if (!runsPrograms(folder)) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  // For all processes of the run.
  process.env['TMPDIR'] = folder
  return folder
}

function makeIn(base: string): string {
  const folder = mkdtempSync(join(base, `${PREFIX}${process.pid}-`))
  // When run as root, PostgreSQL's account has to traverse the folder.
  chmodSync(folder, 0o711)
  return folder
}

/** Whether programs can be run from the folder, which a mount may forbid: the browser and copies of PostgreSQL's programs are. */
function runsPrograms(folder: string): boolean {
  const program = join(folder, 'program')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  try {
    execFileSync(program)
    return true
  } catch {
    return false
  } finally {
    rmSync(program)
  }
}
