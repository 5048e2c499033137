// Sends records in the background: in batches, in their order, again until the server has them.
import { jsonOf } from './exact.ts'
import { type Http, isRefusal, waitMs } from './http.ts'
import type { RecordToWrite } from './records.ts'
import { postRecords, type RecordsCall, type Reject } from './records-call.ts'

export interface IngestOptions {
  /** How many records may wait to be sent; 10,000 by default. */
  maxQueue?: number | undefined
  /** Whether the records send events; true by default. */
  events?: boolean | undefined
  /** Called with each record that is not written. By default its kind, id and code are printed to the standard error. */
  onRejected?: ((rejected: RejectedRecord) => void) | undefined
  /** Called with the error of each failed call, which is sent again. By default its message is printed. */
  onError?: ((error: Error) => void) | undefined
}

export interface RejectedRecord {
  record: RecordToWrite
  /**
   * The server's word for what is wrong, such as `unknown_reference`; `refused_by_proxy` when a firewall or another proxy refuses it,
   * `not_sent` when the program ended before.
   */
  code: string
  reason: string
}

interface Waiting {
  text: string
  bytes: number
}

const BATCH_RECORDS = 100
const BATCH_MS = 200
// The server reads a MiB at most, with what surrounds the records.
const BATCH_BYTES = 1_000_000
const QUEUE_BYTES = 64 * 1024 * 1024
const CLOSE_MS = 10_000

export class Ingest {
  readonly #http: Http
  readonly #headers: () => Record<string, string>
  readonly #query: RecordsCall['query']
  readonly #maxQueue: number
  readonly #onRejected: (rejected: RejectedRecord) => void
  readonly #onError: (error: Error) => void
  readonly #stop = new AbortController()
  readonly #queue: Waiting[] = []
  #bytes = 0
  /** How many records were queued and how many of them have their response. */
  #taken = 0
  #done = 0
  /** How many records the next call has: fewer after a call that was refused as a whole. */
  #size = BATCH_RECORDS
  #isClosed = false
  #isSending = false
  #timer: Timer | undefined
  /** Tries again before the time: a client that closes cannot wait as long. */
  #endPause: (() => void) | undefined
  #waiters: Waiter[] = []

  /** `http` must not retry by itself; `headers` hold the project's key. */
  constructor(http: Http, headers: () => Record<string, string>, options: IngestOptions = {}) {
    this.#http = http
    this.#headers = headers
    this.#query = { events: options.events === false ? 'off' : 'on' }
    this.#maxQueue = options.maxQueue ?? 10_000
    this.#onRejected = options.onRejected ?? printRejected
    this.#onError = options.onError ?? printError
  }

  /** Queues a record. Throws when the queue is full or closed, or when the record is too large. */
  add(record: RecordToWrite): void {
    if (this.#isClosed) throw new Error('The client is closed: it takes no more records.')
    // As it is now: the caller may change the object afterwards.
    const text = jsonOf(record)
    if (text === undefined) throw new TypeError('A record must be an object with record and data.')
    const bytes = new TextEncoder().encode(text).length + 1
    if (bytes > BATCH_BYTES) throw new RangeError(`A record may have ${BATCH_BYTES} bytes; this one has ${bytes}.`)
    if (this.#queue.length >= this.#maxQueue || this.#bytes + bytes > QUEUE_BYTES)
      throw new Error(`The queue is full: ${this.#queue.length} records wait for the server. Send this one later.`)
    watchExit(this.#end)
    this.#queue.push({ text, bytes })
    this.#bytes += bytes
    this.#taken += 1
    if (this.#queue.length >= BATCH_RECORDS) void this.#send()
    else if (!this.#isSending && !this.#timer) this.#start(BATCH_MS, () => void this.#send())
  }

  async flush({ timeoutMs }: { timeoutMs?: number | undefined } = {}): Promise<void> {
    if (this.#queue.length === 0) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const sent = new Promise<void>((resolve, reject) => {
      const waiter = { until: this.#taken, resolve, reject }
      this.#waiters.push(waiter)
      const late = () => this.#settle(new Error(`The records were not sent within ${timeoutMs} ms.`), [waiter])
      if (timeoutMs !== undefined) timer = setTimeout(late, timeoutMs)
    })
    // A program that waits must not end.
    this.#timer?.ref?.()
    void this.#send()
    await sent.finally(() => clearTimeout(timer))
  }

  async close({ timeoutMs = CLOSE_MS }: { timeoutMs?: number | undefined } = {}): Promise<RecordToWrite[]> {
    this.#isClosed = true
    onExit.delete(this.#end)
    this.#endPause?.()
    await this.flush({ timeoutMs }).catch(() => {})
    const error = new Error('The client was closed before all records were sent.')
    this.#stop.abort(error)
    clearTimeout(this.#timer as number | undefined)
    this.#settle(error)
    return this.#queue.splice(0).map(({ text }) => JSON.parse(text) as RecordToWrite)
  }

  readonly #end = async (): Promise<void> => {
    const reason = 'The program ended before it was sent.'
    for (const record of await this.close()) this.#tellRejected({ record, code: 'not_sent', reason })
  }

  /** One call at a time, so that the records of a person arrive in their order. */
  async #send(): Promise<void> {
    if (this.#isSending) return
    this.#isSending = true
    clearTimeout(this.#timer as number | undefined)
    this.#timer = undefined
    for (let tries = 0; this.#queue.length > 0; ) {
      const batch = firstOf(this.#queue, this.#size)
      try {
        await this.#post(batch)
        tries = 0
      } catch (error) {
        if (this.#stop.signal.aborted) return
        guarded(() => this.#onError(error as Error))
        if (isRefusal(error)) this.#settle(error as Error)
        const ms = waitMs(error, tries)
        await new Promise<void>((resolve) => {
          this.#endPause = resolve
          this.#start(ms, resolve)
        })
        clearTimeout(this.#timer as number | undefined)
        this.#timer = this.#endPause = undefined
        tries += 1
      }
    }
    this.#isSending = false
    // Else a program that makes a client for each request would keep all of them.
    onExit.delete(this.#end)
  }

  /** Sends some records once. A call that is refused as a whole is made smaller until the bad record is alone. */
  async #post(batch: Waiting[]): Promise<void> {
    const call = { headers: this.#headers(), query: this.#query, signal: this.#stop.signal }
    const texts = batch.map(({ text }) => text)
    const rejects = await postRecords(this.#http, call, texts)
    if (rejects === 'tooMany') this.#size = batch.length >> 1
    else this.#finish(batch, rejects)
  }

  /** Removes records that have their response, and tells which were rejected. */
  #finish(batch: Waiting[], rejects: Reject[]): void {
    this.#queue.splice(0, batch.length)
    this.#done += batch.length
    for (const { bytes } of batch) this.#bytes -= bytes
    this.#size = Math.min(this.#size * 2, BATCH_RECORDS)
    for (const { index, code, reason } of rejects)
      this.#tellRejected({ record: JSON.parse(batch[index]!.text), code, reason })
    this.#settle()
  }

  #tellRejected(rejected: RejectedRecord): void {
    guarded(() => this.#onRejected(rejected))
  }

  /** Ends the flushes whose records have their response; with an error, those in `over`, by default all. */
  #settle(error?: Error, over = this.#waiters.filter(({ until }) => error || until <= this.#done)): void {
    this.#waiters = this.#waiters.filter((waiter) => !over.includes(waiter))
    if (this.#waiters.length === 0) this.#timer?.unref?.()
    for (const { resolve, reject } of over) error ? reject(error) : resolve()
  }

  /** A timer that lets the program end, unless it waits for a flush: before the end, what is queued is sent. */
  #start(ms: number, work: () => void): void {
    this.#timer = setTimeout(work, ms) as Timer
    if (this.#waiters.length === 0) this.#timer.unref?.()
  }
}

/** A number in some runtimes. */
type Timer = { ref?: () => void; unref?: () => void }

interface Waiter {
  until: number
  resolve: () => void
  reject: (error: Error) => void
}

/** The first records that fit into a call, at most so many. */
function firstOf(queue: Waiting[], most: number): Waiting[] {
  let bytes = 0
  let end = 0
  while (end < Math.min(most, queue.length) && bytes + queue[end]!.bytes <= BATCH_BYTES) bytes += queue[end++]!.bytes
  return queue.slice(0, end)
}

const onExit = new Set<() => Promise<void>>()
let isWatching = false

/** Calls it when the program has nothing else to do, in runtimes that have an end. */
function watchExit(end: () => Promise<void>): void {
  onExit.add(end)
  const { process } = globalThis as { process?: { on?: (name: string, listener: () => void) => void } }
  if (isWatching || !process?.on) return
  isWatching = true
  process.on('beforeExit', () => {
    for (const one of onExit) void one()
  })
}

/** The caller's function must not stop the sending. */
function guarded(call: () => void): void {
  try {
    call()
  } catch (error) {
    console.error(error)
  }
}

const printRejected = ({ record, code }: RejectedRecord) =>
  console.error(`Tundish did not write ${record.record} ${String(record.data['id'] ?? '')}: ${code}`)

const printError = (error: Error) =>
  console.error(
    `Tundish ${isRefusal(error) ? 'refuses the records' : 'could not be reached'}, trying again: ${error.message}`,
  )
