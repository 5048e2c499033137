// The log: JSON lines into a file or a pipe, readable lines on a terminal.
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, pino } from 'pino'
import { maskDigits } from './card-data.ts'
import { errorForLog } from './log-error.ts'
import { readableLine } from './log-lines.ts'

/** Opens the log on standard output (1), standard error (2) or a stream. Every line carries the fields of `base`. */
export function openLog(level: string, to: 1 | 2 | DestinationStream = 1, base: object | null = null): Logger {
  const serializers = { err: errorForLog }
  // The last guard before a line is written: nothing shaped like a card number is logged.
  const hooks = { streamWrite: maskDigits }
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime, serializers, hooks }
  return pino(options, typeof to === 'number' ? openOutput(to) : to)
}

// One write for many lines: a write per line costs a tenth of a short request. Only SIGKILL loses the last lines.
// 4096 bytes are written to a pipe at once, so that workers that share it do not write into each other's lines.
const BATCHED = { sync: false, minLength: 3584, maxWrite: 4096 }
const FLUSH_MS = 50

// How long the end of the process waits for a reader that takes nothing.
const FULL_PIPE_MS = 100
const MAX_FULL_PIPE_WAITS = 50

const lost = new AbortController()

/** Aborted with the error when the log can no longer be written: its reader has ended, or its disk is full. */
export const logLost: AbortSignal = lost.signal

/** After an error nothing more is written. A closed terminal (EIO) is not lost: it sends SIGHUP too. */
function openOutput(dest: 1 | 2): DestinationStream {
  const terminal = isatty(dest)
  const mode = terminal ? { sync: true } : BATCHED
  const output = pino.destination({ dest, ...mode })
  output.flushSync = () => writeRest(dest, output as never)
  output.on('error', (error: NodeJS.ErrnoException) => {
    Object.assign(output, { write: () => {}, flush: () => {}, flushSync: () => {}, end: () => {} })
    if (error.code !== 'EIO') lost.abort(error)
  })
  if (!terminal) return flushedSoon(output)
  const stream = dest === 1 ? process.stdout : process.stderr
  return { write: (line) => output.write(readableLine(line, stream)) }
}

/** The parts of sonic-boom's stream that `writeRest` depends on. */
interface Waiting {
  _bufs: string[]
  /** What is left of the last chunk; the thread pool writes it while `_writing`. */
  _writingBuf: string
  _writing: boolean
  _len: number
}

/**
 * Writes the lines that wait when the process ends. sonic-boom's own `flushSync` repeats a failed write without end: without a
 * reader, or on a full disk, the process would never end.
 */
function writeRest(fd: number, output: Waiting): void {
  const own = output._writing ? '' : output._writingBuf
  let rest = Buffer.from(own + output._bufs.join(''))
  output._bufs.length = 0
  if (!output._writing) output._writingBuf = ''
  output._len = Buffer.byteLength(output._writingBuf)
  for (let waits = 0; rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || ++waits > MAX_FULL_PIPE_WAITS) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_MS)
    }
  }
}

/** Lines that wait are written after 50 ms. pino's own periodic flush makes a system call each time, also without any line. */
function flushedSoon(output: ReturnType<typeof pino.destination>): DestinationStream {
  const write = output.write.bind(output)
  let isDue = false
  const flush = () => {
    isDue = false
    output.flush()
  }
  return Object.assign(output, {
    write(line: string) {
      if (!isDue) setTimeout(flush, FLUSH_MS).unref()
      isDue = true
      return write(line)
    },
  })
}
