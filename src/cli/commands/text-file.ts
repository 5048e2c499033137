// Reads a file that an argument of a command names.
import { readFile } from 'node:fs/promises'
import { decompressed } from '../../data/ingest/compressed.ts'
import { Refusal } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'
import { utf8TextOf } from '../../lib/text.ts'

/**
 * The text of a file, which may be compressed, without a byte order mark. A spreadsheet or a shell of Windows may have written it: letters
 * of another encoding would otherwise be stored as replacement characters.
 */
export async function readTextFile(file: string): Promise<string> {
  const chunks = decompressed(file, [await readNamedFile(file)], () => {})
  const read = utf8TextOf(Buffer.concat(await Array.fromAsync(chunks)))
  if (read === undefined) throw new Refusal(`${file} is not UTF-8: convert it to plain UTF-8 text.`)
  return read
}

export async function readNamedFile(file: string): Promise<Buffer> {
  return readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(`${file} cannot be read: ${whyNot(error)}.`)
  })
}
