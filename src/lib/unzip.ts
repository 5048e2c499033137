// Reads a ZIP archive of one file, as banks publish their tables.
import { crc32, inflateRawSync } from 'node:zlib'
import { Refusal } from './errors.ts'

const [LOCAL, CENTRAL, END] = ['PK\x03\x04', 'PK\x01\x02', 'PK\x05\x06'] as const
const [STORED, DEFLATED] = [0, 8]

export const isZip = (bytes: Buffer): boolean => bytes.toString('latin1', 0, 4) === LOCAL

/** The file in the archive. Throws a `Refusal` for an archive of several files, an encrypted or broken one, and a file of more than `maxBytes`. */
export function unzip(archive: Buffer, name: string, maxBytes: number): Buffer {
  const end = archive.lastIndexOf(END, undefined, 'latin1')
  const refuse = (what: string) => new Refusal(`${name} is a ZIP archive ${what}: give the CSV or XML that is in it.`)
  if (end < 0) throw refuse('that is not whole')
  try {
    if (archive.readUInt16LE(end + 10) !== 1) throw refuse('of several files')
    // The sizes are in the directory at the end: at the file itself they may be missing.
    const entry = archive.readUInt32LE(end + 16)
    const at = archive.readUInt32LE(entry + 42)
    if (archive.toString('latin1', entry, entry + 4) !== CENTRAL) throw refuse('that is not whole')
    const method = archive.readUInt16LE(entry + 10)
    const isEncrypted = (archive.readUInt16LE(entry + 8) & 1) === 1
    if (isEncrypted || (method !== STORED && method !== DEFLATED))
      throw refuse('that is encrypted or in an unusual format')
    if (archive.readUInt32LE(entry + 24) > maxBytes) throw refuse(`whose file exceeds ${maxBytes / 1024 / 1024} MiB`)
    const from = at + 30 + archive.readUInt16LE(at + 26) + archive.readUInt16LE(at + 28)
    const packed = archive.subarray(from, from + archive.readUInt32LE(entry + 20))
    const file = method === STORED ? packed : inflateRawSync(packed, { maxOutputLength: maxBytes })
    if (crc32(file) !== archive.readUInt32LE(entry + 16)) throw refuse('that is damaged')
    return file
  } catch (error) {
    throw error instanceof Refusal ? error : refuse('that cannot be read')
  }
}
