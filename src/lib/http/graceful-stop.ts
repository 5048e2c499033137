// Closes a listener gracefully: requests under way are answered, with `Connection: close` for clients that keep theirs.
import type { ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { SlotSet } from '../slot-set.ts'
import { findStalled, taken } from './stalled-sockets.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Takes no new connections, and answers on those that are there with `Connection: close`, until each has asked once
     * more or been silent for some seconds; then closes like `close`, which hurries it. For when others go on listening.
     */
    leave(): Promise<void>
  }
}

// A client that keeps its connection may be sending at the very moment in which it is closed, and would hear nothing. One
// that has been silent for so long is hardly about to.
const SILENCE_MS = 5000
// A connection may become idle after its server was closed: when its answer had begun before.
const LOOK_MS = 500

/** Adds `leave` to `app`; returns whether it is leaving, when every answer needs `Connection: close`. */
export function installGracefulStop(app: FastifyInstance, underWay: Iterable<ServerResponse>): () => boolean {
  const closing = Promise.withResolvers<void>()
  const connections = new SlotSet<Socket>()
  let leaving = false

  function tellToGo(): void {
    leaving = true
    for (const answer of underWay) if (!answer.headersSent) answer.setHeader('connection', 'close')
  }

  // Node takes an answer for sent when it has ended, and its connection for idle, while a slow client still reads.
  const { closeIdleConnections } = app.server
  app.server.closeIdleConnections = () => {
    for (const answer of underWay) if (answer.writableEnded) return
    closeIdleConnections.call(app.server)
  }

  /** Returns a check that destroys the connections that have had their time. */
  function watchStragglers(): () => void {
    // Node's own check of how long a request takes ends where the closing begins.
    const { requestTimeout } = app.server
    const patienceMs = requestTimeout || SILENCE_MS
    const begunMs = performance.now()
    const stalled = findStalled(patienceMs, (socket) => socket.bytesRead + taken(socket))
    return () => {
      const waitedFor = new Set<Socket>()
      const theirTurn = new Set<Socket>()
      for (const { req, socket } of underWay) {
        if (!socket || !(req.complete || requestTimeout === 0)) continue
        waitedFor.add(socket)
        // What has arrived of a body and is not read yet waits for us.
        const sending = !req.complete && req.readableLength === 0
        if (sending || socket.writableLength > 0) theirTurn.add(socket)
      }
      for (const socket of stalled(theirTurn)) waitedFor.delete(socket)
      if (performance.now() - begunMs < patienceMs) return
      for (const socket of connections) if (!waitedFor.has(socket)) socket.destroy()
    }
  }

  app.server.on('connection', (socket: Socket) => socket.once('close', connections.add(socket)))
  app.addHook('preClose', async () => {
    tellToGo()
    closing.resolve()
    const endStragglers = watchStragglers()
    const looking = setInterval(() => {
      app.server.closeIdleConnections()
      endStragglers()
    }, LOOK_MS).unref()
    app.server.once('close', () => clearInterval(looking))
  })
  app.decorate('leave', async () => {
    tellToGo()
    const empty = new Promise((resolve) => app.server.once('close', resolve))
    // An HTTP server's own close ends idle connections at once.
    NetServer.prototype.close.call(app.server)
    await Promise.race([empty, closing.promise, sleep(SILENCE_MS, undefined, { ref: false })])
    await app.close()
  })
  return () => leaving
}
