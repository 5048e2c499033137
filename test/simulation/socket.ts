// The socket of a simulated process to PostgreSQL: splits what is written into statements, each a step of the scheduler.
import { Duplex } from 'node:stream'
import type { Unit } from './backend.ts'
import { type Message, MessageReader, message, textAt } from './messages.ts'

export interface Link {
  /** Called for the first statement, and for each next one after the response to the previous one. */
  ready(): void
  /** The client has closed the connection. */
  closed(): void
}

const AUTHENTICATED = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))])
// The messages that end a statement.
const ENDS = 'ESQcf'

export class SimulatedSocket extends Duplex {
  readonly #reader = new MessageReader()
  readonly #link: Link
  readonly #units: Unit[] = []
  #unit: Unit = []
  #isGreeted = false

  constructor(link: Link) {
    super()
    this.#link = link
  }

  // The methods of a socket that pg uses.

  connect(): this {
    setImmediate(() => this.emit('connect'))
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#isGreeted) for (const one of this.#reader.read(bytes)) this.#take(one)
    else {
      this.#isGreeted = true
      this.push(AUTHENTICATED)
    }
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#link.closed()
    done(error)
  }

  /** The next statement, if the client has sent one. */
  next(): Unit | undefined {
    return this.#units[0]
  }

  /** Removes and returns the next statement with the sync that follows it. */
  shift(): Unit {
    const unit = this.#units.shift()!
    const following = this.#units[0]
    const isFollowedBySync = unit.at(-1)!.type === 'E' && following?.length === 1 && following[0]!.type === 'S'
    return isFollowedBySync ? [...unit, ...this.#units.shift()!] : unit
  }

  /** Skips what PostgreSQL skips after an error: everything up to the next sync. */
  skipToSync(): void {
    while (this.#units.length > 0 && this.#units[0]!.at(-1)!.type !== 'S') this.#units.shift()
    // Only the sync remains: the messages before it in its statement are skipped, too.
    if (this.#units.length > 0) this.#units[0] = [this.#units[0]!.at(-1)!]
  }

  respond(messages: Message[]): void {
    if (!this.destroyed) this.push(Buffer.concat(messages.map(({ bytes }) => bytes)))
  }

  #take(one: Message): void {
    if (one.type === 'X') {
      this.destroy()
      return
    }
    if (one.type === 'H') return
    this.#unit.push(one)
    if (!ENDS.includes(one.type)) return
    this.#units.push(this.#unit)
    this.#unit = []
    if (this.#units.length === 1) this.#link.ready()
  }
}

/** The label of a statement in the list of steps: its name, or its first words. */
export function nameOf(unit: Unit): string {
  for (const { type, bytes } of unit) {
    if (type === 'P') {
      const name = textAt(bytes, 5)
      return name === '' ? start(textAt(bytes, 6)) : name
    }
    if (type === 'Q') return start(textAt(bytes, 5))
    if (type === 'B') {
      const portal = textAt(bytes, 5)
      return textAt(bytes, 5 + Buffer.byteLength(portal) + 1) || 'statement'
    }
  }
  return unit.at(-1)!.type === 'S' ? 'sync' : 'copy'
}

const start = (text: string) => text.trim().replace(/\s+/g, ' ').slice(0, 60)
