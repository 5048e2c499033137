// Finds stalled clients: connections on which nothing has moved for some time.
import type { Socket } from 'node:net'

/** Returns a check, to be called now and then: the sockets whose `moved` has not changed for `timeoutMs`. */
export function findStalled(
  timeoutMs: number,
  moved: (socket: Socket) => number,
): (sockets: Iterable<Socket>) => Set<Socket> {
  let looks = new Map<Socket, { at: number; sinceMs: number }>()
  return (sockets) => {
    const nowMs = performance.now()
    const before = looks
    looks = new Map()
    for (const socket of sockets) {
      const last = before.get(socket)
      const at = moved(socket)
      looks.set(socket, last?.at === at ? last : { at, sinceMs: nowMs })
    }
    return new Set([...looks].filter(([, { sinceMs }]) => nowMs - sinceMs >= timeoutMs).map(([socket]) => socket))
  }
}

/** How much has been taken of what was written. Node counts a buffer when the last of it is gone: a page is one buffer. */
export function taken(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize: number } | null }
  return socket.bytesWritten - socket.writableLength - (handle?.writeQueueSize ?? 0)
}
