// Connections that carry many short reads at once: each sends its statement without waiting for those before it, and gets
// its rows as the bytes that came.
import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import pg from 'pg'
import type { Param, Statement } from './db.ts'
import { openMessages } from './messages.ts'
import type { Row, TakeRow } from './rows.ts'
import { type Over, streamOf } from './watch.ts'

/** Runs a reading statement. With `take` the rows are handed on as they come and there are none in the answer. */
export type Read = (statement: Statement, params: readonly Param[], take?: TakeRow) => Promise<Row[]>

export interface Pipelines {
  read: Read
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
  /** How many large reads are under way on each. */
  const large = slots.map(() => 0)
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

  /** One after the other, those with the fewest large reads first; the first one is for short ones alone. */
  function choose(isLarge: boolean): number {
    let best = -1
    for (let n = 0; n < slots.length; n += 1) {
      const slot = (next + n) % slots.length
      if (isLarge && slot === 0 && slots.length > 1) continue
      if (best < 0 || large[slot]! < large[best]!) best = slot
    }
    next = (best + 1) % slots.length
    return best
  }

  return {
    async read(statement, params, take) {
      const slot = choose(statement.large === true)
      const weight = statement.large ? 1 : 0
      large[slot]! += weight
      try {
        const client = await (slots[slot] ?? open(slot))
        // Until the requests at hand have all been read.
        holdBack(client, setImmediate)
        underWay += 1
        return await over(client, () => ask(client, statement, params, take)).finally(() => {
          underWay -= 1
        })
      } finally {
        large[slot]! -= weight
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

/** Asks on a plain connection, which may be pipelined. */
export function askPlain<R extends pg.QueryResultRow>(
  client: pg.ClientBase,
  query: pg.QueryConfig,
): Promise<pg.QueryResult<R>> {
  if ((client as pg.Client).pipeline) holdBack(client, process.nextTick)
  return answer((done) => client.query<R>(query, done))
}

async function ask(client: pg.Client, statement: Statement, params: readonly Param[], take?: TakeRow): Promise<Row[]> {
  const rows: Row[] = []
  const query = await answer<RowQuery>((done) => {
    const query = new RowQuery(statement, params, take ?? ((row) => rows.push(row.kept())), (error) =>
      done(error, query),
    )
    client.query(query)
  })
  if (query.failure) throw query.failure
  return rows
}

/**
 * The answer to what is asked of pg, or its error with the stack of who asked: that of the socket tells nothing. pg must
 * not make the promise. It assigns a function literal to a property of each query, which V8 allocates among what it takes
 * to live long; there the function outlives its query, and all that the query has brought with it, to the next major
 * collection.
 */
async function answer<T>(ask: (done: (error: Error | null, result: T) => void) => void): Promise<T> {
  try {
    return await new Promise((resolve, reject) => {
      ask((error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    Error.captureStackTrace(error as Error, answer)
    throw error
  }
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

/** A query that hands on its rows as they come, and does not ask what its columns are called. */
class RowQuery extends pg.Query {
  declare readonly text: string
  declare readonly hasBeenParsed: (connection: Wire) => boolean
  declare callback: (error: Error | null) => void
  readonly name: string | undefined
  readonly values: readonly Param[]
  /** 0 is all. */
  readonly most: number
  readonly take: TakeRow
  /** Why a row could not be taken, if one could not. */
  failure: Error | undefined

  constructor(
    { name, text, most = 0 }: Statement,
    values: readonly Param[],
    take: TakeRow,
    callback: (error: Error | null) => void,
  ) {
    super(text)
    this.callback = callback
    this.take = take
    this.most = most
    this.name = name
    this.values = values
  }

  requiresPreparation(): boolean {
    return true
  }

  // Called by pg for each row; everything else comes as it does for every query.
  handleDataRow(row: Row): void {
    if (this.failure) return
    try {
      this.take(row)
    } catch (error) {
      this.failure = error as Error
    }
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
  // pg's own parser gets all messages but the rows.
  const others = new EventEmitter()
  const messages = openMessages(
    (row) => wire.emit('dataRow', row),
    (bytes) => others.emit('data', bytes),
  )
  const received = (bytes: number) => {
    messages.came(bytes)
    // Go on reading.
    return true
  }
  const onread = { buffer: messages.room, callback: received }
  // What comes is read straight to where it is cut up; only what TLS has to open first takes another way.
  const stream = ({ ssl }: { ssl?: unknown }) => new Socket(ssl ? {} : { onread })
  const client = new pg.Client(Object.assign({}, config, { pipeline: true, stream }) as pg.ClientConfig)
  const wire = (client as unknown as { connection: Wire }).connection
  const attach = wire.attachListeners.bind(wire)
  wire.attachListeners = (stream) => {
    attach(others)
    stream.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; ) {
        const bytes = chunk.copy(messages.room(), 0, at)
        messages.came(bytes)
        at += bytes
      }
    })
  }
  return client
}
