// The folder of a test run: its database server, its browser and, in memory where there is room, the temporary files of its tests.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const PREFIX = 'tundish-test-'

const MEMORY = '/dev/shm'
// Many times what the quick tests have in their files at once.
const ROOM = 4 * 2 ** 30

/** The folders in which runs make theirs. */
export const bases = (): string[] => [realpathSync(tmpdir()), ...(existsSync(MEMORY) ? [MEMORY] : [])]

export const makeScratch = (): string => inMemory() ?? makeIn(realpathSync(tmpdir()))

/** A database of a test has 600 files: to copy them costs half a second of the kernel's time on some disks. */
function inMemory(): string | undefined {
  if (!process.env['TUNDISH_TEST_IN_MEMORY'] || !existsSync(MEMORY)) return undefined
  const { bavail, bsize } = statfsSync(MEMORY)
  if (Math.min(bavail * bsize, process.availableMemory()) < ROOM) return undefined
  const folder = makeIn(MEMORY)
  if (!runsPrograms(folder)) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  // For all processes of this run.
  process.env['TMPDIR'] = folder
  return folder
}

function makeIn(base: string): string {
  const folder = mkdtempSync(join(base, `${PREFIX}${process.pid}-`))
  // As root, PostgreSQL's account has to pass.
  chmodSync(folder, 0o711)
  return folder
}

/** The browser and copies of PostgreSQL's programs are run from there, which a mount may forbid. */
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
