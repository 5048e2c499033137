// The command that makes and checks a release.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../support/folder.ts'

const MAIN = fileURLToPath(new URL('../../scripts/release/main.ts', import.meta.url))

test('1 and a sentence for a folder without a release, unknown platforms, checks and options; the folder stays as it is', () => {
  const out = temporaryFolder()
  const release = (...args: string[]) => {
    const { status, stderr } = spawnSync(process.execPath, [MAIN, '--out', out, ...args], { encoding: 'utf8' })
    assert.equal(status, 1)
    return stderr
  }
  assert.equal(release('--check'), `${out} has no release: make it first, or name its folder with --out.\n`)
  const made = join(out, 'SHA256SUMS')
  writeFileSync(made, '')
  assert.match(
    release('--check', '--only', 'windows'),
    /^No check has "windows" in its name\. There are: archive in a bare Debian root; .*Python packages; [^;]+\.\n$/,
  )
  assert.match(release('--snapshot', '--platform', 'linux'), /^There is no platform "linux"\.\nnpm run release -- /)
  assert.match(release('--snapshot', '--plattform', 'linux-x64'), /^Unknown option '--plattform'/)
  assert.ok(existsSync(made))
})
