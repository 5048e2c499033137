// Makes ZIP archives, packed or stored, whose sizes are in the directory at the end only, as programs that write to a pipe do.
import { crc32, deflateRawSync } from 'node:zlib'

export function zipOf(files: Record<string, string>, { stored = false, comment = '' } = {}): Buffer {
  const [locals, entries]: [Buffer[], Buffer[]] = [[], []]
  let at = 0
  for (const [name, text] of Object.entries(files)) {
    const plain = Buffer.from(text)
    const packed = stored ? plain : deflateRawSync(plain)
    const local = Buffer.alloc(30)
    local.write('PK\x03\x04', 'latin1')
    const entry = Buffer.alloc(46)
    entry.write('PK\x01\x02', 'latin1')
    for (const [header, shift] of [
      [local, 0],
      [entry, 2],
    ] as const) {
      header.writeUInt16LE(stored ? 0 : 8, 8 + shift)
      header.writeUInt16LE(name.length, 26 + shift)
    }
    entry.writeUInt32LE(crc32(plain), 16)
    entry.writeUInt32LE(packed.length, 20)
    entry.writeUInt32LE(plain.length, 24)
    entry.writeUInt32LE(at, 42)
    locals.push(local, Buffer.from(name), packed)
    entries.push(entry, Buffer.from(name))
    at += 30 + name.length + packed.length
  }
  const directory = Buffer.concat(entries)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  const count = Object.keys(files).length
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(at, 16)
  end.writeUInt16LE(comment.length, 20)
  return Buffer.concat([...locals, directory, end, Buffer.from(comment)])
}
