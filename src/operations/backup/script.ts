// Reads the SQL script of a backup, ours or pg_restore's, as a stream: lines, and between them the rows of COPY blocks.
import { createHash } from 'node:crypto'
import { SEAL_LINE, type Seal } from './format.ts'

/** The file was changed or cut off; the message is for the user. */
export class DamagedError extends Error {}

export interface CopyBlock {
  schema: string
  table: string
  columns: string[]
}

export interface SequenceValue {
  schema: string
  sequence: string
  value: bigint
  /** Whether the value was issued already. */
  called: boolean
}

// Many times the size of a header with every table and column.
const LONGEST_LINE = 16 * 1024 * 1024
const END_OF_ROWS = Buffer.from('\\.\n')
const END_AFTER_ROWS = Buffer.from('\n\\.\n')
const LINE_FEED = 0x0a

export class Script {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #hash = createHash('sha256')
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next line without its end; undefined at the end of the script. */
  async line(): Promise<string | undefined> {
    let end = this.#rest.indexOf(LINE_FEED)
    while (end < 0) {
      if (this.#rest.length > LONGEST_LINE) throw new DamagedError('It holds a line without an end.')
      const searched = this.#rest.length
      if (!(await this.#more())) break
      end = this.#rest.indexOf(LINE_FEED, searched)
    }
    if (end < 0 && this.#rest.length > 0) throw new DamagedError('It is cut off.')
    if (end < 0) return undefined
    const line = this.#rest.toString('utf8', 0, end)
    // The seal covers the lines before it.
    if (!line.startsWith(SEAL_LINE)) this.#hash.update(this.#rest.subarray(0, end + 1))
    this.#rest = this.#rest.subarray(end + 1)
    return line
  }

  /** The rows of the block whose COPY line was read last; read them to their end. */
  async *rows(): AsyncGenerator<Buffer> {
    while (this.#rest.length < END_OF_ROWS.length && (await this.#more())) {}
    if (this.#rest.subarray(0, END_OF_ROWS.length).equals(END_OF_ROWS)) {
      this.#take(END_OF_ROWS.length)
      return
    }
    for (;;) {
      const end = this.#rest.indexOf(END_AFTER_ROWS)
      if (end >= 0) {
        yield this.#take(end + 1)
        this.#take(END_OF_ROWS.length)
        return
      }
      // The end may have begun in these last bytes.
      const certain = this.#rest.length - END_OF_ROWS.length
      if (certain > 0) yield this.#take(certain)
      if (!(await this.#more())) throw new DamagedError('It is cut off.')
    }
  }

  /** Compares the seal of a script with the bytes read before it. */
  checkSeal(line: string): Seal {
    const seal = JSON.parse(line.slice(SEAL_LINE.length)) as Seal
    if (seal.sha256 === this.#hash.copy().digest('hex')) return seal
    throw new DamagedError('Its SHA-256 is not that of what was written.')
  }

  /** Closes the source at any position. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    this.#hash.update(taken)
    return taken
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#chunks.next()
    if (done) return false
    this.#rest = this.#rest.length === 0 ? value : Buffer.concat([this.#rest, value])
    return true
  }
}

const NAME = String.raw`("(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)`
const COPY = new RegExp(String.raw`^COPY ${NAME}\.${NAME} \((.+)\) FROM stdin;$`, 'u')
const SETVAL = new RegExp(String.raw`^SELECT pg_catalog\.setval\('${NAME}\.${NAME}', (-?\d+), (true|false)\);$`, 'u')

/** Whether a line begins a block of rows, and of which table. */
export function readCopyLine(line: string): CopyBlock | undefined {
  const [, schema, table, columns] = COPY.exec(line) ?? []
  if (columns === undefined) return undefined
  const names = columns.match(new RegExp(NAME, 'gu')) ?? []
  return { schema: unquote(schema!), table: unquote(table!), columns: names.map(unquote) }
}

export function readSequenceLine(line: string): SequenceValue | undefined {
  const [, schema, sequence, value, called] = SETVAL.exec(line.replaceAll("''", "'")) ?? []
  if (called === undefined) return undefined
  return { schema: unquote(schema!), sequence: unquote(sequence!), value: BigInt(value!), called: called === 'true' }
}

const unquote = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name)
