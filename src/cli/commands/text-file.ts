// Reads a file that an argument of a command names.
import { readFile } from 'node:fs/promises'
import { Refusal } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'

export const readTextFile = async (file: string): Promise<string> => (await readNamedFile(file)).toString('utf8')

export async function readNamedFile(file: string): Promise<Buffer> {
  return readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(`${file} cannot be read: ${whyNot(error)}.`)
  })
}
