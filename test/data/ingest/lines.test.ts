// How bytes become lines: any chunks, any line ends, and what cannot be read.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_EMPTY_BYTES, MAX_LINE_BYTES, readLines } from '../../../src/data/ingest/lines.ts'
import { column } from '../../support/rows.ts'

interface Unreadable {
  number: number
  reason: string
  part: number
  bytes: Buffer
}

async function read(chunks: Buffer[]) {
  const lines: [number, string][] = []
  const unreadable: Unreadable[] = []
  let bytes = 0
  const sink = {
    line: (number: number, text: string) => lines.push([number, text]),
    unreadable: (number: number, { message: reason }: Error, bytes: Buffer, part: number) =>
      unreadable.push({ number, reason, part, bytes }),
    isFull: () => false,
  }
  for await (const size of readLines('body', Readable.from(chunks), sink)) bytes += size
  return { lines, unreadable, bytes }
}

const buffers = (...texts: string[]) => texts.map((text) => Buffer.from(text))

test('lines keep their numbers, empty ones are left out, the last may lack its line feed', async () => {
  const { lines } = await read(buffers('one\n\n  \t\r\nfour\r\nfive'))
  assert.deepEqual(lines, [
    [1, 'one'],
    [4, 'four\r'],
    [5, 'five'],
  ])
})

test('a byte order mark is dropped at the start of the stream, and nowhere else', async () => {
  const { lines } = await read([Buffer.from([0xef]), Buffer.from([0xbb, 0xbf, 0x31]), ...buffers('\n\ufeff2')])
  assert.deepEqual(lines, [
    [1, '1'],
    [2, '\ufeff2'],
  ])
})

test('a line that is not UTF-8 is reported, and the others are read', async () => {
  const { lines, unreadable } = await read([
    Buffer.concat([...buffers('a\nb'), Buffer.from([0xff]), ...buffers('\nc\n')]),
  ])
  assert.deepEqual(lines, [
    [1, 'a'],
    [3, 'c'],
  ])
  assert.deepEqual(unreadable, [
    { number: 2, reason: 'the line is not UTF-8', part: 0, bytes: Buffer.from([0x62, 0xff]) },
  ])
})

test('the longest line is read; a longer one comes in parts, all of it, and the next line has its number', async () => {
  const longest = 'x'.repeat(MAX_LINE_BYTES)
  const { lines, unreadable } = await read(buffers(`${longest}\n${longest}yz\nend`))
  assert.deepEqual(
    lines.map(([number, text]) => [number, text.length]),
    [
      [1, MAX_LINE_BYTES],
      [3, 3],
    ],
  )
  assert.equal(Buffer.concat(unreadable.map(({ bytes }) => bytes)).toString(), `${longest}yz`)
  assert.deepEqual(
    column(unreadable, 'part'),
    unreadable.map((_, n) => n),
  )
  assert.ok(unreadable.every(({ number }) => number === 2))
})

test('the lines are the same wherever the stream is split into chunks', async () => {
  const text = fc.array(fc.constantFrom('a', 'é', '😀', '\n', '\r', ' ', '{"x":1}'), { maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }), async (parts, sizes) => {
      const whole = Buffer.from(parts.join(''))
      const chunks: Buffer[] = []
      for (let at = 0, n = 0; at < whole.length; n++) {
        const size = sizes[n % sizes.length]!
        chunks.push(whole.subarray(at, at + size))
        at += size
      }
      const expected = parts
        .join('')
        .split('\n')
        .map((line, n): [number, string] => [n + 1, line])
        .filter(([, line]) => /[^ \t\r]/.test(line))
      const { lines, unreadable, bytes } = await read(chunks)
      assert.deepEqual([lines, unreadable, bytes], [expected, [], whole.length])
    }),
    { numRuns: 200 },
  )
})

test('the event loop is not blocked by the lines of one large chunk', async () => {
  let turns = 0
  let done = false
  const turn = () => {
    turns++
    if (!done) setImmediate(turn)
  }
  setImmediate(turn)
  const busy = () => {
    for (const endMs = performance.now() + 1; performance.now() < endMs; );
  }
  const sink = { line: busy, unreadable() {}, isFull: () => false }
  for await (const _size of readLines('body', Readable.from([Buffer.from('x\n'.repeat(500))]), sink));
  done = true
  assert.ok(turns > 20, `${turns} turns of the event loop`)
})

test('nothing is read after the sink is full', async () => {
  let lines = 0
  const sink = { line: () => lines++, unreadable() {}, isFull: () => lines === 3 }
  async function* endless() {
    for (;;) yield Buffer.from('x\n'.repeat(10))
  }
  for await (const _size of readLines('body', endless(), sink));
  assert.equal(lines, 3)
})

test('as many empty lines as the limit are skipped, again after each other line; more end the reading with their line', async () => {
  for (const empty of ['\n', ' \t\r\n', `${' '.repeat(1023)}\n`]) {
    const count = MAX_EMPTY_BYTES / empty.length
    const most = empty.repeat(count)
    const { lines } = await read(buffers(`${most}a\n${most}b\n${most}`))
    assert.deepEqual(lines, [
      [count + 1, 'a'],
      [2 * count + 2, 'b'],
    ])
    // A line that cannot be read is one, too.
    const odd = await read([...buffers(most), Buffer.from([0xff, 0x0a]), ...buffers(most)])
    assert.deepEqual([odd.unreadable.length, odd.bytes], [1, 2 * MAX_EMPTY_BYTES + 2])
    await assert.rejects(read(buffers(`a\n${most}${empty}b\n`)), {
      message:
        /^body has more than 1048576 bytes of empty lines one after the other, up to line \d+: nothing was written\.$/,
    })
  }
  const bad = Buffer.concat([Buffer.from([0xff, 0x0a]), ...buffers('\n'.repeat(MAX_EMPTY_BYTES + 1))])
  await assert.rejects(read([bad]), /empty lines one after the other/)
})
