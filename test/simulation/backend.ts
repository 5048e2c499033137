// A real connection to PostgreSQL, used by simulated connections one after another. It keeps prepared statements.
import type { Socket } from 'node:net'
import pg from 'pg'
import { clientConfig } from '../../src/lib/pg/client-config.ts'
import { codeOf, type Message, MessageReader, message, textAt } from './messages.ts'

/** The messages of one statement of a simulated connection, from the first to its execute, its sync, or both. */
export type Unit = Message[]

const SYNC = message('S')
const FLUSH = message('H')
// The messages that end the response to a unit without a sync: done, empty query, limit of rows, or an error.
const ENDS_EXECUTE = 'CIsE'
// A query of the simple protocol also pauses at a COPY.
const ENDS_QUERY = 'ZGHW'

export class Backend {
  readonly pid: number
  readonly #socket: Socket
  readonly #reader = new MessageReader()
  readonly #prepared = new Map<string, string>()
  #response: Message[] = []
  #isEnd: (type: string) => boolean = () => false
  #isCopying = false
  /** The number of transaction ends whose responses belong to the simulation's own statements. */
  #toSkip = 0
  #done: ((response: Message[]) => void) | undefined
  /** `I` outside a transaction, `T` in one, `E` in a failed one. */
  state = 'I'

  private constructor(pid: number, socket: Socket) {
    this.pid = pid
    this.#socket = socket
    socket.removeAllListeners()
    socket.on('data', (bytes) => this.#take(bytes))
    socket.on('error', () => {})
  }

  static async open(url: string, searchPath: string): Promise<Backend> {
    const config = clientConfig({ url, applicationName: 'simulation' })
    // PostgreSQL measures timeouts in real time, in which a simulated process may stand still for long.
    const options = `${config.options} -c search_path=${searchPath} -c statement_timeout=0 -c idle_in_transaction_session_timeout=0`
    const client = new pg.Client({ ...config, options })
    await client.connect()
    const { rows } = await client.query<{ pid: string }>('select pg_backend_pid() as pid')
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    return new Backend(Number(rows[0]!.pid), stream)
  }

  /**
   * Runs a unit, and resolves with the messages for the simulated connection; later if the unit waits for a lock. `before` are
   * statements of the simulation that run first, in their own transaction: only outside a transaction.
   */
  async run(unit: Unit, before?: string): Promise<Message[]> {
    if (before !== undefined) {
      this.#toSkip = 1
      this.#socket.cork()
      this.#socket.write(message('Q', before))
    }
    const last = unit.at(-1)!.type
    const { bytes, isKnown, name, text } = this.#withoutParse(unit)
    const asked = this.#ask(
      last === 'S' || last === 'Q' || last === 'c' || last === 'f' ? bytes : Buffer.concat([bytes, FLUSH]),
      endOf(last),
    )
    if (before !== undefined) this.#socket.uncork()
    const response = await asked
    if (name && text !== undefined && response.some(({ type }) => type === '1')) this.#prepared.set(name, text)
    const ordered = /order by/i.test(this.#textOf(unit)) ? response : sortRows(response)
    return isKnown ? [{ type: '1', bytes: message('1') }, ...ordered] : ordered.filter(({ type }) => type !== '3')
  }

  /** The text of a statement; for a prepared one, found by its name. */
  #textOf(unit: Unit): string {
    for (const { type, bytes } of unit) {
      if (type === 'P') return textAt(bytes, 5 + Buffer.byteLength(textAt(bytes, 5)) + 1)
      if (type === 'Q') return textAt(bytes, 5)
      if (type === 'B') {
        const portal = textAt(bytes, 5)
        return this.#prepared.get(textAt(bytes, 5 + Buffer.byteLength(portal) + 1)) ?? ''
      }
    }
    return ''
  }

  /** Sends messages without a response, such as the rows of a COPY. */
  send({ bytes }: Message): void {
    this.#socket.write(bytes)
  }

  /** Rolls back what a simulated connection has left open. No statement may be running. */
  async reset(): Promise<void> {
    if (this.#isCopying) await this.#ask(message('f', 'the client has gone'), (type) => type === 'Z')
    await this.#ask(SYNC, (type) => type === 'Z')
    for (const text of ['rollback', 'select pg_advisory_unlock_all()', 'discard temp', 'reset all'])
      await this.#ask(message('Q', text), (type) => type === 'Z')
  }

  close(): void {
    this.#socket.end(message('X'))
  }

  /** A statement that this connection has prepared before is not prepared again. */
  #withoutParse(unit: Unit) {
    const parse = unit[0]!
    const all = Buffer.concat(unit.map(({ bytes }) => bytes))
    if (parse.type !== 'P') return { bytes: all, isKnown: false }
    const name = textAt(parse.bytes, 5)
    if (name === '') return { bytes: all, isKnown: false }
    const text = textAt(parse.bytes, 5 + Buffer.byteLength(name) + 1)
    const known = this.#prepared.get(name)
    if (known === text) return { bytes: all.subarray(parse.bytes.length), isKnown: true }
    const close = known === undefined ? Buffer.alloc(0) : message('C', Buffer.from('S'), name)
    return { bytes: Buffer.concat([close, all]), isKnown: false, name, text }
  }

  #ask(bytes: Buffer, isEnd: (type: string) => boolean): Promise<Message[]> {
    return new Promise((resolve) => {
      this.#response = []
      this.#isEnd = isEnd
      this.#done = resolve
      this.#socket.write(bytes)
    })
  }

  #take(bytes: Buffer): void {
    for (const one of this.#reader.read(bytes)) {
      // Notices and changed settings are not part of a response.
      if ('NSA'.includes(one.type)) continue
      if (this.#toSkip > 0) {
        if (one.type === 'E') throw new Error(`PostgreSQL refused what sets the time: ${codeOf(one)}.`)
        if (one.type === 'Z') this.#toSkip--
        continue
      }
      this.#response.push(one)
      if (one.type === 'G') this.#isCopying = true
      if (one.type === 'Z') this.#isCopying = false
      if (one.type === 'Z') this.state = String.fromCharCode(one.bytes[5]!)
      if (!this.#isEnd(one.type)) continue
      const done = this.#done
      this.#done = undefined
      done?.(this.#response)
    }
  }
}

function endOf(last: string): (type: string) => boolean {
  if (last === 'S' || last === 'c' || last === 'f') return (type) => type === 'Z'
  if (last === 'Q') return (type) => ENDS_QUERY.includes(type)
  return (type) => ENDS_EXECUTE.includes(type)
}

/** Sorts rows without an order: their order depends on the plan, and so on statistics, on which a seed must not depend. */
function sortRows(response: Message[]): Message[] {
  const rows = response.filter(({ type }) => type === 'D').sort((one, other) => Buffer.compare(one.bytes, other.bytes))
  let next = 0
  return response.map((one) => (one.type === 'D' ? rows[next++]! : one))
}

/** The error in a response, if there is one. */
export const errorIn = (response: Message[]) => {
  const error = response.find(({ type }) => type === 'E')
  return error && codeOf(error)
}
