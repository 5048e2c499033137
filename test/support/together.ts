// Runs many test files in one process, so that the program is loaded and compiled once, not 160 times.
import { globSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

const TESTS = join(import.meta.dirname, '..')

// Slow files have their own run, and each its own process.
const SLOW = /\.slow\.test\.ts$/

// Far longer than a file takes with eight busy loops on the machine, and far shorter than a run may take.
const FILE_MS = 15 * 60_000
// Time for connections and the like to close after the last test.
const END_MS = 120_000

/**
 * Runs the share of `entry`: of as many shares as its folder has files, the one of its place among them. Every file is a
 * test that holds the file's own, with its own hooks, and is loaded when the file before has ended.
 */
export function runTogether(entry: string): void {
  const entries = readdirSync(dirname(entry)).sort()
  const files = sharesOf(entries.length)[entries.indexOf(basename(entry))]!
  let limit: NodeJS.Timeout | undefined
  const failAfter = (ms: number, sentence: string) => {
    clearTimeout(limit)
    // Nothing waits for this timer: a process that has nothing left to do ends before.
    limit = setTimeout(fail, ms, sentence).unref()
  }
  for (const file of files) {
    const name = `test/${file}`
    test(name, async (t) => {
      failAfter(FILE_MS, `${name} has not ended in ${FILE_MS / 60_000} minutes.`)
      if (file === files.at(-1)) t.after(() => failAfter(END_MS, 'A test has left something open.'))
      await import(pathToFileURL(join(TESTS, file)).href)
    })
  }
}

/** So many shares of the quick files with about the same number of bytes, so that they take about the same time. */
function sharesOf(count: number): string[][] {
  const shares = Array.from({ length: count }, () => ({ bytes: 0, files: [] as string[] }))
  const quick = globSync('**/*.test.ts', { cwd: TESTS }).filter((name) => !SLOW.test(name))
  const sized = quick.map((file) => ({ file, bytes: statSync(join(TESTS, file)).size }))
  for (const { file, bytes } of sized.sort((a, b) => b.bytes - a.bytes || (a.file < b.file ? -1 : 1))) {
    const smallest = shares.reduce((least, one) => (one.bytes < least.bytes ? one : least))
    smallest.bytes += bytes
    smallest.files.push(file)
  }
  return shares.map(({ files }) => files)
}

/** A test that fails may leave a server at work, or a hook that waits for it: that must not hold up the run. */
function fail(sentence: string): void {
  console.error(`${sentence} Open: ${process.getActiveResourcesInfo().join(', ')}.`)
  process.exit(1)
}
