// Reads a text file that an argument of a command names.
import { readFile } from 'node:fs/promises'
import { Refusal } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'

export async function readTextFile(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(`${file} cannot be read: ${whyNot(error)}.`)
  })
}
