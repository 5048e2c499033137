// Runs many test files in one process, so that the program they share is loaded and compiled once, not 160 times.
import { globSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

const TESTS = join(import.meta.dirname, '..')

// Slow ones are another run, and these need a process of their own.
const APART = /\.(slow|alone)\.test\.ts$/

/**
 * Runs the share of `entry`: of as many shares as its folder has files, the one of its place among them. Every file is a
 * test that holds the file's own, with its own hooks, and is loaded when the file before has ended.
 */
export function runTogether(entry: string): void {
  const entries = readdirSync(dirname(entry)).sort()
  const share = entries.indexOf(basename(entry))
  const files = globSync('**/*.test.ts', { cwd: TESTS }).sort()
  for (const [n, file] of files.filter((name) => !APART.test(name)).entries()) {
    if (n % entries.length !== share) continue
    test(`test/${file}`, async () => {
      await import(pathToFileURL(join(TESTS, file)).href)
    })
  }
}
