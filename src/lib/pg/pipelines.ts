// Pipelined connections for many concurrent short reads. The reads of one turn of the event loop are sent together, without
// waiting for earlier results, and each gets its rows as the received bytes.
import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type pg from 'pg'
import { Client } from './client.ts'
import type { MakeSocket } from './hosts.ts'
import type { Guarded } from './liveness.ts'
import { openMessages } from './messages.ts'
import { MAX_IN_BATCH, openOutbox } from './outbox.ts'
import { wireOf } from './protocol.ts'
import type { Row, TakeRow } from './row-bytes.ts'
import type { Param, Statement } from './types.ts'

/** Runs a reading statement. With `take` each row is passed on as it arrives, and the result is empty. */
export type Read = (statement: Statement, params: readonly Param[], take?: TakeRow) => Promise<Row[]>

export interface Pipelines {
  read: Read
  /** The number of unfinished reads. */
  underWay(): number
  close(): Promise<void>
}

/** Opens up to `connections` connections, each at its first use; `onLost` is called when one has ended. */
export function openPipelines(
  config: pg.ClientConfig,
  connections: number,
  guarded: Guarded,
  onLost: () => void = () => {},
): Pipelines {
  const slots: (Promise<pg.Client> | undefined)[] = Array.from({ length: connections })
  /** The number of unfinished large reads on each. */
  const large = slots.map(() => 0)
  /** The connection for the short reads of this turn of the event loop, and how many it was given. */
  let shortReads: { slot: number; count: number } | undefined
  let next = 0
  let underWay = 0
  const send = openOutbox()

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

  /** Round-robin among those with the fewest large reads; the first connection is for short reads only. */
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

  /** Short reads of one turn use the same connection until they fill a batch, because a batch has one response. */
  function chooseForShort(): number {
    if (!shortReads) setImmediate(() => (shortReads = undefined))
    if (!shortReads || shortReads.count === MAX_IN_BATCH) shortReads = { slot: choose(false), count: 0 }
    shortReads.count += 1
    return shortReads.slot
  }

  return {
    async read(statement, params, take) {
      const slot = statement.large ? choose(true) : chooseForShort()
      const weight = statement.large ? 1 : 0
      large[slot]! += weight
      underWay += 1
      try {
        const client = await (slots[slot] ?? open(slot))
        return await guarded(client, () => send(client, statement, params, take))
      } finally {
        underWay -= 1
        large[slot]! -= weight
      }
    },
    underWay: () => underWay,
    async close() {
      const clients = await Promise.all(slots.map((slot) => slot?.catch(() => undefined)))
      // Lets the reads of this turn be sent first.
      await nextTurn()
      await Promise.all(clients.map((client) => client?.end()))
    },
  }
}

/** A pipelined client that passes rows on as bytes. Its queries are batches of reads. */
function rowClient(config: pg.ClientConfig): pg.Client {
  // pg's own parser gets all messages except rows.
  const others = new EventEmitter()
  const messages = openMessages(
    (row) => wire.emit('dataRow', row),
    (bytes) => others.emit('data', bytes),
  )
  const callback = (bytes: number) => {
    messages.received(bytes)
    // Go on reading.
    return true
  }
  const onread = { buffer: messages.room, callback }
  // The socket reads into the buffer of the messages, without a copy. With TLS the bytes are copied into it.
  const makeSocket = (config.stream as MakeSocket | undefined) ?? ((_config, options) => new Socket(options))
  const stream = (given: { ssl?: unknown }) => makeSocket(given, given.ssl ? {} : { onread })
  const client = new Client(Object.assign({}, config, { pipeline: true, stream }) as pg.ClientConfig)
  const wire = wireOf(client)
  const attach = wire.attachListeners.bind(wire)
  wire.attachListeners = (stream) => {
    attach(others)
    stream.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; ) {
        const bytes = chunk.copy(messages.room(), 0, at)
        messages.received(bytes)
        at += bytes
      }
    })
  }
  return client
}
