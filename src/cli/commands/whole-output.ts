// Standard output into a file, all of it or an error.
import { fstatSync, writeSync } from 'node:fs'
import { EXIT_REFUSED } from './command.ts'

/** A closed pipe ends the output silently; a full disk is reported in a sentence. */
export function watchOutput(): void {
  writeWholeOutput()
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return
    process.stderr.write(`The output cannot be written (${code}).\n`)
    // Set at the end, in place of the 0 of a command that succeeded.
    process.once('exit', () => {
      process.exitCode ||= EXIT_REFUSED
    })
  })
  // Standard error itself cannot be written: nothing is left to report to.
  process.stderr.on('error', () => {})
}

/** Node takes what a disk has room for as the whole, and the command would end with 0. */
function writeWholeOutput(): void {
  if (!isFile(1)) return
  process.stdout._write = (chunk: Buffer | string, encoding, done) => {
    try {
      for (let rest = Buffer.from(chunk as string, encoding); rest.length > 0; )
        rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      return done(error as Error)
    }
    done()
  }
}

function isFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile()
  } catch {
    // It is closed.
    return false
  }
}
