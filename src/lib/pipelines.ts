// Connections that carry many short reads at once: each sends its statement without waiting for those before it, and gets
// its rows as the bytes that came.
import { EventEmitter } from 'node:events'
import pg from 'pg'
import type { Param, Statement } from './db.ts'
import { Row } from './rows.ts'
import { type Over, streamOf } from './watch.ts'

export interface Pipelines {
  read(statement: Statement, params: readonly Param[]): Promise<Row[]>
  /** Reads that were sent and are not answered yet. */
  underWay(): number
  close(): Promise<void>
}

/** Opens as many connections as are wanted, each when it is first needed; `onLost` hears when one has ended. */
export function openPipelines(
  config: pg.ClientConfig,
  connections: number,
  over: Over,
  onLost: () => void = () => {},
): Pipelines {
  const slots: (Promise<pg.Client> | undefined)[] = Array.from({ length: connections })
  let next = 0
  let underWay = 0

  function open(slot: number): Promise<pg.Client> {
    const client = rowClient(config)
    const opened = client.connect().then(() => client)
    const forget = () => {
      if (slots[slot] !== opened) return
      slots[slot] = undefined
      onLost()
    }
    client.on('error', forget)
    client.on('end', forget)
    opened.catch(forget)
    slots[slot] = opened
    return opened
  }

  return {
    async read(statement, params) {
      const slot = next
      next = (next + 1) % slots.length
      const client = await (slots[slot] ?? open(slot))
      // Until the requests at hand have all been read.
      holdBack(client, setImmediate)
      underWay += 1
      try {
        return await over(client, () => ask(client, statement, params))
      } finally {
        underWay -= 1
      }
    },
    underWay: () => underWay,
    async close() {
      await Promise.all(slots.map(async (slot) => (await slot?.catch(() => {}))?.end()))
    },
  }
}

/** Holds back what is written to this connection until it is time: one system call for many statements. */
function holdBack(client: pg.ClientBase, whenItIsTime: (send: () => void) => void): void {
  const stream = streamOf(client)
  if (stream.writableCorked > 0) return
  stream.cork()
  whenItIsTime(() => stream.uncork())
}

/**
 * Has a plain connection send what it is asked without waiting for the answers before; what is asked at one go goes in one
 * system call. To be called when nothing is under way on it.
 */
export function pipeline(client: pg.ClientBase, isPipelined: boolean): void {
  Object.assign(client, { pipeline: isPipelined })
}

/** Asks on a connection that may be pipelined. */
export function askTogether<T>(client: pg.ClientBase, ask: () => Promise<T>): Promise<T> {
  if ((client as pg.Client).pipeline) holdBack(client, process.nextTick)
  return ask()
}

function ask(client: pg.Client, statement: Statement, params: readonly Param[]): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    const query = new RowQuery(statement, params)
    query.callback = (error) => (error ? reject(withOurStack(error)) : resolve(query.found))
    client.query(query)
  })
}

/** The stack of an error from the socket tells nothing of who asked. */
function withOurStack(error: Error): Error {
  Error.captureStackTrace(error)
  return error
}

/** What we need of the inside of pg, which its types do not show. */
interface Wire extends EventEmitter {
  attachListeners(stream: EventEmitter): void
  parse(statement: { name: string | undefined; text: string }): void
  bind(bound: {
    statement: string | undefined
    values: readonly Param[]
    valueMapper: (value: unknown) => unknown
  }): void
  execute(portal: { rows: number }): void
  sync(): void
  submittedNamedStatements: Record<string, string>
}

const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): unknown } }).utils

/** A query that keeps its rows as they come, and does not ask what its columns are called. */
class RowQuery extends pg.Query {
  declare readonly text: string
  declare readonly hasBeenParsed: (connection: Wire) => boolean
  declare callback: (error: Error | null) => void
  readonly name: string | undefined
  readonly values: readonly Param[]
  readonly found: Row[] = []
  /** 0 is all. */
  readonly most: number

  constructor({ name, text, most = 0 }: Statement, values: readonly Param[]) {
    super(text)
    this.most = most
    this.name = name
    this.values = values
  }

  requiresPreparation(): boolean {
    return true
  }

  // Called by pg for each row; everything else comes as it does for every query.
  handleDataRow(row: Row): void {
    this.found.push(row)
  }

  handleCommandComplete(): void {}

  // As many rows as were wanted; the sync that was sent along ends the rest.
  handlePortalSuspended(): void {}

  prepare(connection: Wire): void {
    if (!this.hasBeenParsed(connection)) {
      connection.parse({ name: this.name, text: this.text })
      if (this.name !== undefined) connection.submittedNamedStatements[this.name] = this.text
    }
    connection.bind({ statement: this.name, values: this.values, valueMapper: prepareValue })
    connection.execute({ rows: this.most })
    connection.sync()
  }
}

/** A pipelined client whose rows come as bytes; its queries are `RowQuery`s. */
function rowClient(config: pg.ClientConfig): pg.Client {
  const client = new pg.Client({ ...config, pipeline: true } as pg.ClientConfig)
  const wire = (client as unknown as { connection: Wire }).connection
  const attach = wire.attachListeners.bind(wire)
  wire.attachListeners = (stream) => {
    // pg's own parser gets all messages but the rows.
    const others = new EventEmitter()
    attach(others)
    stream.on(
      'data',
      splitMessages(
        (row) => wire.emit('dataRow', row),
        (bytes) => others.emit('data', bytes),
      ),
    )
  }
  return client
}

// A message: its code, its length without the code, and its body; that of a row begins with the number of its columns.
const HEADER_BYTES = 5
const DATA_ROW = 0x44
const COUNT_BYTES = 2

/** Cuts what comes from PostgreSQL into its messages, in their order: rows one by one, the others in as few pieces as they lie in. */
function splitMessages(onRow: (row: Row) => void, onOthers: (bytes: Buffer) => void): (chunk: Buffer) => void {
  /** The beginning of a message whose end has not come. */
  let held: Buffer[] = []
  let heldBytes = 0
  let neededBytes = HEADER_BYTES

  return (chunk) => {
    held.push(chunk)
    heldBytes += chunk.length
    if (heldBytes < neededBytes) return
    const bytes = held.length === 1 ? chunk : Buffer.concat(held)
    let at = 0
    let othersAt = 0
    neededBytes = HEADER_BYTES
    while (at + HEADER_BYTES <= bytes.length) {
      const length = 1 + bytes.readUInt32BE(at + 1)
      if (at + length > bytes.length) {
        neededBytes = length
        break
      }
      const end = at + length
      if (bytes[at] === DATA_ROW) {
        if (at > othersAt) onOthers(bytes.subarray(othersAt, at))
        onRow(new Row(bytes, at + HEADER_BYTES + COUNT_BYTES, end))
        othersAt = end
      }
      at = end
    }
    if (at > othersAt) onOthers(bytes.subarray(othersAt, at))
    held = at === bytes.length ? [] : [bytes.subarray(at)]
    heldBytes = bytes.length - at
  }
}
