// Finds stalled clients: connections without progress for some time.
import type { Socket } from 'node:net'

/** Returns a check, to be called regularly: it returns the sockets whose `moved` has not changed for `timeoutMs`. */
export function findStalled(
  timeoutMs: number,
  moved: (socket: Socket) => number,
): (sockets: Iterable<Socket>) => Set<Socket> {
  let seen = new Map<Socket, { at: number; sinceMs: number }>()
  return (sockets) => {
    const nowMs = performance.now()
    const before = seen
    seen = new Map()
    for (const socket of sockets) {
      const last = before.get(socket)
      const at = moved(socket)
      seen.set(socket, last?.at === at ? last : { at, sinceMs: nowMs })
    }
    return new Set([...seen].filter(([, { sinceMs }]) => nowMs - sinceMs >= timeoutMs).map(([socket]) => socket))
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
