// Runs many test files in one process, so that the program is loaded and compiled once, not 160 times.
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createsFolder } from './folder.ts'

const TESTS = join(import.meta.dirname, '..')

// Slow files have their own run, and each its own process.
const SLOW = /\.slow\.test\.ts$/

// Far longer than a file takes with eight busy loops on the machine, and far shorter than a run may take.
const FILE_MS = 15 * 60_000
// Time for connections and the like to close after the last test.
const END_MS = 120_000

/**
 * Runs quick files, each of which one of the processes takes, the large ones first, so that all end at about the same time.
 * Every file is a test that holds the file's own, with its own hooks, and is loaded when the file before has ended.
 */
export async function runTogether(): Promise<void> {
  let limit: NodeJS.Timeout | undefined
  const failAfter = (ms: number, sentence: string) => {
    clearTimeout(limit)
    // Nothing waits for this timer: a process that has nothing left to do ends before.
    limit = setTimeout(fail, ms, sentence).unref()
  }
  for (const file of quickFiles()) {
    if (!take(file)) continue
    const name = `test/${file}`
    await test(name, async () => {
      failAfter(FILE_MS, `${name} has not ended in ${FILE_MS / 60_000} minutes.`)
      await import(pathToFileURL(join(TESTS, file)).href)
    })
  }
  failAfter(END_MS, 'A test has left something open.')
}

/** The largest, which take longest, first. */
function quickFiles(): string[] {
  const quick = globSync('**/*.test.ts', { cwd: TESTS }).filter((name) => !SLOW.test(name))
  const sized = quick.map((file) => ({ file, bytes: statSync(join(TESTS, file)).size }))
  return sized.sort((a, b) => b.bytes - a.bytes || (a.file < b.file ? -1 : 1)).map(({ file }) => file)
}

/** Whether no other process of the run has taken the file. */
const take = (file: string) => createsFolder(join(process.env['TUNDISH_TEST_TAKEN']!, file.replaceAll('/', ' ')))

/** A test that fails may leave a server at work, or a hook that waits for it: that must not hold up the run. */
function fail(sentence: string): void {
  console.error(`${sentence} Open: ${process.getActiveResourcesInfo().join(', ')}.`)
  process.exit(1)
}
