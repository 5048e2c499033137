// Finds stalled clients: connections without progress for some time.
import type { Socket } from 'node:net'

// While the process itself was held up, it could not serve its clients. So at most this part of the timeout counts between two
// checks, and a client has at least one more interval to make progress.
const MAX_FRACTION_AT_ONCE = 1 / 2

/**
 * Returns a check, to be called several times in `timeoutMs`: it returns the sockets whose `moved` has not changed for
 * that long.
 */
export function findStalled(
  timeoutMs: number,
  moved: (socket: Socket) => number,
): (sockets: Iterable<Socket>) => Set<Socket> {
  let seen = new Map<Socket, { at: number; forMs: number }>()
  let checkedMs = performance.now()
  return (sockets) => {
    const nowMs = performance.now()
    const passedMs = Math.min(nowMs - checkedMs, timeoutMs * MAX_FRACTION_AT_ONCE)
    checkedMs = nowMs
    const before = seen
    seen = new Map()
    for (const socket of sockets) {
      const last = before.get(socket)
      const at = moved(socket)
      seen.set(socket, { at, forMs: last?.at === at ? last.forMs + passedMs : 0 })
    }
    return new Set([...seen].filter(([, { forMs }]) => forMs >= timeoutMs).map(([socket]) => socket))
  }
}

/**
 * The number of bytes that the client has taken. Node counts a buffer only when it is sent completely; a page is one
 * buffer.
 */
export function taken(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize: number } | null }
  return socket.bytesWritten - socket.writableLength - (handle?.writeQueueSize ?? 0)
}
