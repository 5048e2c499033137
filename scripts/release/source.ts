// What a release is made from: the commit, its time and its version. The version stands in package.json only.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './run.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface Source {
  version: string
  commit: string
  /** Seconds since 1970 of the commit: every file of a release has this time, so that two builds are equal. */
  epoch: string
}

/** Throws unless the checkout is clean and its commit has the tag `vVERSION`; `snapshot` skips both rules. */
export function readSource({ snapshot }: { snapshot: boolean }): Source {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const git = (...args: string[]) => run('git', args, { cwd: ROOT }).toString().trim()
  if (!snapshot) {
    if (git('status', '--porcelain') !== '')
      throw new Error('The checkout has changes: commit them, or use --snapshot.')
    if (!git('tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`))
      throw new Error(`The commit has no tag v${version}, the version of package.json: tag it, or use --snapshot.`)
  }
  return { version, commit: git('rev-parse', 'HEAD'), epoch: git('log', '-1', '--format=%ct') }
}
