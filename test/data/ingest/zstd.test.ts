// zstd of several frames: every one is read, however the bytes arrive, and what is cut off or no frame is refused.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { constants, zstdCompressSync } from 'node:zlib'
import { decompressed } from '../../../src/data/ingest/compressed.ts'

// Random text does not become smaller, so the second has several blocks; the third is one block of a repeated byte.
const texts = ['a line\n', `${randomBytes(200_000).toString('hex')}\n`, `${'x'.repeat(100_000)}\n`, '']
const checksummed = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }
const frames = [
  zstdCompressSync(texts[0]!),
  zstdCompressSync(texts[1]!, checksummed),
  zstdCompressSync(texts[2]!, { params: { [constants.ZSTD_c_contentSizeFlag]: 0 } }),
  zstdCompressSync(texts[3]!),
]
const skippable = Buffer.concat([Buffer.from([0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0]), Buffer.from('skip')])

async function read(bytes: Buffer, chunkBytes: number): Promise<string> {
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
  }
  const read: Buffer[] = []
  for await (const chunk of decompressed('it', chunks(), () => {})) read.push(chunk)
  return Buffer.concat(read).toString()
}

const DAMAGED = { message: /^it is zstd, but damaged or incomplete \(.+\): nothing was written\.$/ }

test('all frames are read, whatever the chunks are', async () => {
  for (const chunkBytes of [1000, 65_536, 1_000_000])
    assert.equal(await read(Buffer.concat(frames), chunkBytes), texts.join(''))
  const small = Buffer.concat([frames[0]!, frames[2]!, frames[3]!, frames[0]!])
  for (const chunkBytes of [1, 2, 3, 5, 7, 11]) {
    assert.equal(await read(small, chunkBytes), texts[0]! + texts[2] + texts[0], `${chunkBytes}`)
  }
})

test('skippable frames are passed over, also at the beginning, as pzstd writes them', async () => {
  const bytes = Buffer.concat([skippable, frames[0]!, skippable, frames[0]!, skippable])
  for (const chunkBytes of [1, 8, 1000]) assert.equal(await read(bytes, chunkBytes), texts[0]! + texts[0])
})

test('a second frame that is cut off anywhere is refused', async () => {
  const [first, second] = [frames[0]!, zstdCompressSync('another line\n', checksummed)]
  for (let length = 1; length < second.length; length++) {
    const bytes = Buffer.concat([first, second.subarray(0, length)])
    await assert.rejects(read(bytes, 1000), DAMAGED, `${length}`)
  }
})

test('a skippable frame that is cut off is refused', async () => {
  for (let length = 1; length < skippable.length; length++) {
    const bytes = Buffer.concat([frames[0]!, skippable.subarray(0, length)])
    await assert.rejects(read(bytes, 1000), DAMAGED, `${length}`)
  }
})

test('other bytes after a frame are refused', async () => {
  await assert.rejects(read(Buffer.concat([frames[0]!, Buffer.from('{"record"')]), 1000), DAMAGED)
  await assert.rejects(read(Buffer.concat([frames[0]!, Buffer.alloc(512)]), 1000), DAMAGED)
})
