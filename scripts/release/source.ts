// What a release is made from: the commit, its time and its version. The version stands in package.json only.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
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
    refuseOldDatabase(version)
  }
  return { version, commit: git('rev-parse', 'HEAD'), epoch: git('log', '-1', '--format=%ct') }
}

/** Later programs are tried on the database of this version, which has to be made again after the last migration before the tag. */
function refuseOldDatabase(version: string): void {
  if (!version.endsWith('.0')) return
  const file = `test/upgrades/${version}.sql.gz`
  const sql = gunzipSync(readFileSync(join(ROOT, file))).toString()
  const lacking = readdirSync(join(ROOT, 'migrations')).filter((name) => {
    const [, number, called] = /^(\d+)_(\w+)\.sql$/.exec(name)!
    return !sql.includes(`(${Number(number)}, '${called}', `)
  })
  if (lacking.length > 0)
    throw new Error(
      `${file} lacks ${lacking.join(', ')}: make it again as test/upgrades/make.ts says, and move the tag.`,
    )
}
