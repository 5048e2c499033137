// Connections that carry many short reads at once: each sends its statement without waiting for those before it, and gets
// its rows as the bytes that came.
import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import pg from 'pg'
import type { MakeSocket } from './hosts.ts'
import type { Guarded } from './liveness.ts'
import { openMessages } from './messages.ts'
import { holdBack, Prepared, run, wireOf } from './protocol.ts'
import type { Row, TakeRow } from './row-bytes.ts'
import type { Param, Statement } from './types.ts'

/** Runs a reading statement. With `take` the rows are handed on as they come and there are none in the answer. */
export type Read = (statement: Statement, params: readonly Param[], take?: TakeRow) => Promise<Row[]>

export interface Pipelines {
  read: Read
  /** Reads that were sent and are not answered yet. */
  underWay(): number
  close(): Promise<void>
}

/** Opens as many connections as are wanted, each when it is first needed; `onLost` is called when one has ended. */
export function openPipelines(
  config: pg.ClientConfig,
  connections: number,
  guarded: Guarded,
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
        holdBack(client)
        underWay += 1
        return await guarded(client, () => ask(client, statement, params, take)).finally(() => {
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

async function ask(client: pg.Client, statement: Statement, params: readonly Param[], take?: TakeRow): Promise<Row[]> {
  const rows: Row[] = []
  const query = await run(client, new RowQuery(statement, params, take ?? ((row) => rows.push(row.kept()))))
  if (query.failure) throw query.failure
  return rows
}

/** A query that hands on its rows as they come, and does not ask what its columns are called. */
class RowQuery extends Prepared {
  readonly take: TakeRow
  /** Why a row could not be taken, if one could not. */
  failure: Error | undefined

  constructor(statement: Statement, values: readonly Param[], take: TakeRow) {
    super(statement, values)
    this.take = take
  }

  // Called by pg for each row.
  override handleDataRow(row: Row): void {
    if (this.failure) return
    try {
      this.take(row)
    } catch (error) {
      this.failure = error as Error
    }
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
  const makeSocket = (config.stream as MakeSocket | undefined) ?? ((_config, options) => new Socket(options))
  const stream = (given: { ssl?: unknown }) => makeSocket(given, given.ssl ? {} : { onread })
  const client = new pg.Client(Object.assign({}, config, { pipeline: true, stream }) as pg.ClientConfig)
  const wire = wireOf(client)
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
