// Standard output into a file, all of it or an error.
import { fstatSync, writeSync } from 'node:fs'

/** Node takes what a disk has room for as the whole, and the command would end with 0. */
export function writeWholeOutput(): void {
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
