// What a listener lets in: connections, requests at once, sizes, and how slow a client may be.
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyHttpOptions, FastifyInstance } from 'fastify'
import { ApiError, tryLater } from '../errors.ts'
import type { SlotSet } from '../slot-set.ts'
import { findStalled, taken } from './stalled-sockets.ts'

export interface ListenerBounds {
  /** Requests under way; further ones are answered 503. Health is always answered. */
  concurrentRequests: number
  /** Open connections; further ones are closed at once. */
  connections: number
  bodyBytes: number
  /** All headers with the request line. */
  headerBytes: number
  urlBytes: number
  /** How long the headers may take to arrive, from the connection's beginning or the end of the request before. */
  headersTimeoutMs: number
  /** The same for the whole request with its body. */
  requestTimeoutMs: number
  /** How long a connection may be idle between requests. */
  keepAliveTimeoutMs: number
  /** How long a client may leave an answer lying without taking any of it. */
  sendTimeoutMs: number
}

// How late a slow client is found, at most; a look costs microseconds. A crowd of them is found in pieces.
const MOST_LATE_MS = 200

/** The bounds that the HTTP server keeps by itself. */
export function serverOptions(bounds: ListenerBounds): FastifyHttpOptions<Server> {
  return {
    bodyLimit: bounds.bodyBytes,
    requestTimeout: bounds.requestTimeoutMs,
    keepAliveTimeout: bounds.keepAliveTimeoutMs,
    http: {
      maxHeaderSize: bounds.headerBytes,
      headersTimeout: bounds.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(MOST_LATE_MS, bounds.headersTimeoutMs),
    },
  }
}

/** Keeps the others on `app`. Call it behind the hook that adds to `underWay`, and before any other hook or route. */
export function keepBounds(app: FastifyInstance, bounds: ListenerBounds, underWay: SlotSet<ServerResponse>): void {
  app.server.maxConnections = bounds.connections
  // Among workers, a connection that one of them has no room for would else go round for ever when none of them has.
  Object.assign(app.server, { dropMaxConnection: true })
  dropStalled(app, bounds.sendTimeoutMs, underWay)
  app.addHook('onRequest', async (request) => {
    if (underWay.size > bounds.concurrentRequests && !request.url.startsWith('/health/')) throw busy()
  })
  // Behind a door's key, like everything that is said of a path.
  app.addHook('preParsing', async (request) => {
    const { url = '' } = request.raw
    if (url.length > bounds.urlBytes) {
      throw new ApiError(414, 'uri_too_long', `The address is longer than ${bounds.urlBytes} bytes.`)
    }
  })
}

function busy(): ApiError {
  return tryLater('server_busy', 'Too many requests are under way at the moment: try again.')
}

/** Closes connections whose client takes nothing of what waits for it: each would hold its answer in memory for ever. */
function dropStalled(app: FastifyInstance, timeoutMs: number, underWay: SlotSet<ServerResponse>): void {
  const stalled = findStalled(timeoutMs, taken)
  const look = () => {
    for (const socket of stalled(waiting())) socket.destroy()
  }
  function* waiting(): Iterable<Socket> {
    for (const { socket } of underWay) if (socket && socket.writableLength > 0) yield socket
  }
  const timer = setInterval(look, Math.min(MOST_LATE_MS, timeoutMs)).unref()
  app.addHook('onClose', async () => clearInterval(timer))
}
