// A small disk in memory, and what fills a disk.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdtempSync, realpathSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
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

export interface SmallDisk {
  folder: string
  unmount(): void
  /** Why there is none: then `folder` is empty, and no test may use it. */
  why: string | undefined
}

/** A small disk in memory, whose folder the account of PostgreSQL may traverse. */
export function mountSmallDisk(megabytes: number): SmallDisk {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tundish-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'pipe' })
  } catch {
    rmSync(folder, { recursive: true, force: true })
    return { folder: '', unmount() {}, why: 'no small disk can be mounted here' }
  }
  chmodSync(folder, 0o711)
  let mounted = true
  const unmount = () => {
    if (mounted) execFileSync('umount', ['-l', folder])
    mounted = false
    rmSync(folder, { recursive: true, force: true })
  }
  // Otherwise the disk would outlive the test.
  process.once('exit', unmount)
  return { folder, unmount, why: undefined }
}
