// Runs many test files in one process, so that the program they share is loaded and compiled once, not 160 times.
import { globSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

const TESTS = join(import.meta.dirname, '..')

// Slow ones are another run, and these need a process of their own.
const APART = /\.(slow|alone)\.test\.ts$/

// For what ends by itself after the last test, such as connections that close.
const PATIENCE_MS = 120_000

/**
 * Runs the share of `entry`: of as many shares as its folder has files, the one of its place among them. Every file is a
 * test that holds the file's own, with its own hooks, and is loaded when the file before has ended.
 */
export function runTogether(entry: string): void {
  const entries = readdirSync(dirname(entry)).sort()
  const share = entries.indexOf(basename(entry))
  const all = globSync('**/*.test.ts', { cwd: TESTS }).sort()
  const files = all.filter((name) => !APART.test(name)).filter((_name, n) => n % entries.length === share)
  for (const file of files) {
    test(`test/${file}`, async (t) => {
      if (file === files.at(-1)) t.after(failWhenHeldUp)
      await import(pathToFileURL(join(TESTS, file)).href)
    })
  }
}

/** A test that fails may leave a server at work: that must not hold up the run for ever. */
function failWhenHeldUp(): void {
  const fail = () => {
    console.error(`A test has left something open: ${process.getActiveResourcesInfo().join(', ')}.`)
    process.exit(1)
  }
  // Nothing waits for this timer, so it only comes to it when something else keeps the process running.
  setTimeout(fail, PATIENCE_MS).unref()
}
