// Closes a listener gracefully: running requests get their response, with `Connection: close` on kept-alive connections.
import type { ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { SlotSet } from '../slot-set.ts'
import { findStalled, taken } from './stalled-sockets.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Accepts no new connections, and responds on open ones with `Connection: close`, until each has sent one more request or
     * been idle for some seconds; then closes like `close`, which shortens the wait. For a worker whose siblings go on
     * listening.
     */
    leave(): Promise<void>
  }
}

// A client may be sending a request at the moment its kept-alive connection is closed, and would get no response. After
// being idle for this long it is unlikely to.
const SILENCE_MS = 5000
// A connection may become idle after its server was closed, if its response had begun before.
const LOOK_MS = 250
// Idle connections are kept until this look, for requests that were on their way when closing began. It is not the first: what
// arrived while the process was held up is read between two looks.
const LOOK_AT_IDLE = 2
// Browsers connect ahead and may never send a request. One that is on its way arrives within this time.
const FIRST_BYTE_MS = 1000
// Under load there are always further ones.
const ACCEPT_MS = 1000

/**
 * Adds `leave` to `app`; returns a function that says whether it is leaving: then every response needs `Connection: close`.
 */
export function installGracefulStop(app: FastifyInstance, underWay: Iterable<ServerResponse>): () => boolean {
  const closing = Promise.withResolvers<void>()
  const connections = new SlotSet<Socket>()
  let leaving = false

  function announceClose(): void {
    leaving = true
    for (const response of underWay) if (!response.headersSent) response.setHeader('connection', 'close')
  }

  // Node and Fastify close idle connections as soon as closing begins.
  const { closeIdleConnections } = app.server
  app.server.closeIdleConnections = () => {}

  function endIdle(): void {
    // Node considers a response sent and its connection idle as soon as it has ended, while a slow client still reads.
    for (const response of underWay) if (response.writableEnded) return
    closeIdleConnections.call(app.server)
  }

  /** Returns a check that destroys the connections that have exceeded their time, and those on which nothing was sent. */
  function watchStragglers(): () => void {
    // Node's own check of the request timeout ends when closing begins.
    const { requestTimeout } = app.server
    const timeoutMs = requestTimeout || SILENCE_MS
    const begunMs = performance.now()
    const stalled = findStalled(timeoutMs, (socket) => socket.bytesRead + taken(socket))
    return () => {
      const serving = new Set<Socket>()
      // Those whose client has to act next: send the rest of its request, or read the response.
      const clientsTurn = new Set<Socket>()
      for (const { req, socket } of underWay) {
        if (!socket || !(req.complete || requestTimeout === 0)) continue
        serving.add(socket)
        // Received bytes of a body that the handler has not read yet are not the client's delay.
        const sending = !req.complete && req.readableLength === 0
        if (sending || socket.writableLength > 0) clientsTurn.add(socket)
      }
      for (const socket of stalled(clientsTurn)) serving.delete(socket)
      const passedMs = performance.now() - begunMs
      for (const socket of connections)
        if (socket.bytesRead === 0 ? passedMs >= FIRST_BYTE_MS : passedMs >= timeoutMs && !serving.has(socket))
          socket.destroy()
    }
  }

  app.server.on('connection', (socket: Socket) => socket.once('close', connections.add(socket)))
  app.addHook('preClose', async () => {
    announceClose()
    closing.resolve()
    await acceptWaiting(app.server)
    const endStragglers = watchStragglers()
    let looks = 0
    const looking = setInterval(() => {
      looks += 1
      if (looks >= LOOK_AT_IDLE) endIdle()
      endStragglers()
    }, LOOK_MS).unref()
    app.server.once('close', () => clearInterval(looking))
  })
  app.decorate('leave', async () => {
    announceClose()
    const empty = new Promise((resolve) => app.server.once('close', resolve))
    // Closing the HTTP server would also end its check of slow requests.
    NetServer.prototype.close.call(app.server)
    await Promise.race([empty, closing.promise, sleep(SILENCE_MS, undefined, { ref: false })])
    await app.close()
  })
  return () => leaving
}

/** Closing a listening socket resets the connections that it has not accepted yet, perhaps with a request. Node accepts them one by one. */
async function acceptWaiting(server: NetServer): Promise<void> {
  const endMs = performance.now() + ACCEPT_MS
  let found = true
  const note = () => {
    found = true
  }
  server.on('connection', note)
  while (found && performance.now() < endMs) {
    found = false
    // Between the two Node looks at its sockets.
    await setImmediate()
    await setImmediate()
  }
  server.off('connection', note)
}
