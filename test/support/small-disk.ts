// A small disk in memory, and what fills a disk.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, realpathSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Writes until the disk is full. */
export function fill(file: string): void {
  const { bavail, bsize } = statfsSync(dirname(file))
  try {
    writeFileSync(file, Buffer.alloc(bavail * bsize))
    for (;;) appendFileSync(file, Buffer.alloc(bsize))
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  }
}

/** A small disk in memory with a function that removes it; or why there is none. */
export function mountSmallDisk(megabytes: number): { folder: string; unmount(): void } | { why: string } {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'pipe' })
  } catch {
    rmSync(folder, { recursive: true, force: true })
    return { why: 'no small disk can be mounted here' }
  }
  let mounted = true
  const unmount = () => {
    if (mounted) execFileSync('umount', ['-l', folder])
    mounted = false
    rmSync(folder, { recursive: true, force: true })
  }
  // Otherwise the disk would outlive the test.
  process.once('exit', unmount)
  return { folder, unmount }
}
