// Tries the artefacts of a release as their users would: npm run release -- --check. Needs root on Debian, for bare roots and images.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { has } from '../run.ts'
import { tryArchive } from './archive.ts'
import { tryChart } from './chart.ts'
import { tryCompose } from './compose.ts'
import { tryDebian } from './debian.ts'
import { tryImage } from './image.ts'
import { tryJavaScript, tryPython } from './packages.ts'
import { tryReadme } from './readme.ts'

interface Check {
  name: string
  /** Programs that it needs; without one of them it is skipped, and the table says so. */
  needs: string[]
  run: (out: string, version: string) => Promise<string>
}

const CHECKS: readonly Check[] = [
  { name: 'archive in a bare Debian root', needs: ['debootstrap', 'chroot'], run: tryArchive },
  { name: '.deb in a bare Debian root', needs: ['debootstrap', 'chroot'], run: tryDebian },
  { name: 'image, read-only, not root', needs: ['buildah', 'podman', 'runc', 'debootstrap'], run: tryImage },
  { name: 'compose.yaml, translated', needs: ['buildah', 'podman', 'runc', 'python3'], run: tryCompose },
  { name: 'chart with three sets of values', needs: ['go'], run: tryChart },
  { name: 'JavaScript package on Node 20, 22 and 24', needs: ['npm'], run: tryJavaScript },
  { name: 'Python packages', needs: ['python3'], run: tryPython },
  { name: "the README's three ways to start", needs: ['git', 'npm', 'podman', 'runc'], run: tryReadme },
]

const contains = (name: string, part: string) => name.toLowerCase().includes(part.toLowerCase())

/** Runs all checks, or those whose name contains one of `only`, and prints a table. Returns whether none failed. */
export async function check(out: string, version: string, only: readonly string[] = []): Promise<boolean> {
  if (!existsSync(join(out, 'SHA256SUMS')))
    throw new Error(`${out} has no release: make it first, or name its folder with --out.`)
  const unknown = only.find((part) => !CHECKS.some(({ name }) => contains(name, part)))
  if (unknown !== undefined)
    throw new Error(`No check has "${unknown}" in its name. There are: ${CHECKS.map(({ name }) => name).join('; ')}.`)
  let sound = true
  for (const { name, needs, run } of CHECKS) {
    if (only.length > 0 && !only.some((part) => contains(name, part))) continue
    const missing = [...needs.filter((program) => !has(program)), ...(process.getuid?.() === 0 ? [] : ['root'])]
    const result =
      missing.length > 0
        ? `skipped: needs ${missing.join(', ')}`
        : await run(out, version).catch((error: Error) => error)
    if (result instanceof Error) sound = false
    process.stdout.write(`| ${name} | ${result instanceof Error ? `FAILED: ${result.message}` : result} |\n`)
  }
  return sound
}
