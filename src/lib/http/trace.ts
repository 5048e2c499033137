// W3C Trace Context: reads the caller's `traceparent`, or begins a trace, and adds this server's span.
import { randomPiece } from '../random.ts'

export interface Trace {
  /** 32 hex digits: the same in every program that a request passes through. */
  traceId: string
  /** The `traceparent` to pass on, with this request as the parent. */
  traceparent: string
}

// Version, trace id, parent id, flags; later versions may append more.
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const VERSION = '00'
const SAMPLED = 0x01

/** The trace of a request that came with this header; an invalid one, or none, begins a new trace. */
export function traceOf(header: string | string[] | undefined): Trace {
  const [, version, traceId, , flags, more] = (typeof header === 'string' && TRACEPARENT.exec(header)) || []
  const isKnown = traceId !== undefined && !(version === VERSION && more !== undefined)
  const id = isKnown ? traceId : random(16)
  // Only the sampled flag is passed on; traces that begin here are not sampled.
  const sampled = isKnown ? Number.parseInt(flags!, 16) & SAMPLED : 0
  return { traceId: id, traceparent: `${VERSION}-${id}-${random(8)}-0${sampled}` }
}

function random(bytes: number): string {
  const text = randomPiece(bytes).toString('hex')
  // All zeros would be no id; one in 2^64.
  return /[^0]/.test(text) ? text : random(bytes)
}
