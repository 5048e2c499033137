// Bare Debian roots: what a minimal installation has, and nothing else.
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../run.ts'
import { ROOT } from '../source.ts'

const FOLDER = join(ROOT, '.cache/release')
const BASE = join(FOLDER, 'bookworm')

/** The folder of a minimal Debian 12; it is made once. */
export function bareRoot(): string {
  if (!existsSync(join(BASE, 'etc/debian_version'))) {
    mkdirSync(FOLDER, { recursive: true })
    run('debootstrap', ['--variant=minbase', 'bookworm', BASE])
  }
  return BASE
}

/** Makes a copy of the bare root with /proc, /dev and the network of this machine, and removes it after `use`. */
export async function withRoot<T>(name: string, use: (root: string) => Promise<T>): Promise<T> {
  const root = join(FOLDER, name)
  unmount(root)
  rmSync(root, { recursive: true, force: true })
  run('cp', ['-a', bareRoot(), root])
  run('mount', ['--bind', '/proc', join(root, 'proc')])
  run('mount', ['--bind', '/dev', join(root, 'dev')])
  run('cp', ['/etc/resolv.conf', join(root, 'etc/resolv.conf')])
  try {
    return await use(root)
  } finally {
    unmount(root)
    rmSync(root, { recursive: true, force: true })
  }
}

function unmount(root: string): void {
  // A process of the root may still be ending: the mounts leave when it has.
  for (const folder of ['proc', 'dev']) if (isMounted(join(root, folder))) run('umount', ['--lazy', join(root, folder)])
}

function isMounted(path: string): boolean {
  return run('cat', ['/proc/mounts']).toString().includes(` ${path} `)
}
