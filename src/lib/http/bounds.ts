// The bounds of a listener: connections, concurrent requests, sizes, and how slow a client may be.
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyHttpOptions, FastifyInstance } from 'fastify'
import { ApiError, tryLater } from '../errors.ts'
import type { SlotSet } from '../slot-set.ts'
import { findStalled, taken } from './stalled-sockets.ts'

export interface ListenerBounds {
  /** Concurrent requests; further ones get a 503, except health checks. */
  concurrentRequests: number
  /** Open connections; further ones are closed at once. */
  connections: number
  bodyBytes: number
  /** The size of all headers with the request line. */
  headerBytes: number
  urlBytes: number
  /** How long the headers may take to arrive, from the start of the connection or the end of the previous request. */
  headersTimeoutMs: number
  /** The same for the whole request with its body. */
  requestTimeoutMs: number
  /** How long a connection may be idle between requests. */
  keepAliveTimeoutMs: number
  /** How long a client may stop reading a response. */
  sendTimeoutMs: number
}

/** The bounds that proxies in front of a listener depend on. A listener may have these alone. */
export type ProxyBounds = Pick<ListenerBounds, 'headerBytes' | 'keepAliveTimeoutMs'>

export const isComplete = (bounds: ListenerBounds | ProxyBounds): bounds is ListenerBounds => 'connections' in bounds

// The longest time until a client that does not read is found; a check takes microseconds.
const MAX_LATE_MS = 200
// Node checks its connections periodically, and each check wakes an idle process: a tenth of the timeout late is soon enough.
const HEADERS_LATE_SHARE = 10
const HEADERS_MAX_LATE_MS = 1000

/** The bounds that Node's HTTP server enforces. */
export function serverOptions(bounds: ListenerBounds | ProxyBounds): FastifyHttpOptions<Server> {
  const { headerBytes: maxHeaderSize, keepAliveTimeoutMs: keepAliveTimeout } = bounds
  if (!isComplete(bounds)) return { keepAliveTimeout, http: { maxHeaderSize } }
  return {
    bodyLimit: bounds.bodyBytes,
    requestTimeout: bounds.requestTimeoutMs,
    keepAliveTimeout,
    http: {
      maxHeaderSize,
      headersTimeout: bounds.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(HEADERS_MAX_LATE_MS, bounds.headersTimeoutMs / HEADERS_LATE_SHARE),
    },
  }
}

/**
 * Enforces the other bounds on `app`. Call it after the hook that adds to `underWay`, and before any other hook or route.
 */
export function enforceBounds(app: FastifyInstance, bounds: ListenerBounds, underWay: SlotSet<ServerResponse>): void {
  app.server.maxConnections = bounds.connections
  // Otherwise a connection would be passed between workers without end when none of them has room.
  Object.assign(app.server, { dropMaxConnection: true })
  dropStalled(app, bounds.sendTimeoutMs, underWay)
  app.addHook('onRequest', (request, _reply, done) => {
    if (underWay.size > bounds.concurrentRequests && !request.url.startsWith('/health/')) throw busy()
    done()
  })
  // After authentication, like every response about a path.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { url = '' } = request.raw
    if (url.length > bounds.urlBytes) {
      throw new ApiError(414, 'uri_too_long', `The URL is longer than ${bounds.urlBytes} bytes.`)
    }
    done()
  })
}

function busy(): ApiError {
  return tryLater('server_busy', 'Too many concurrent requests at the moment: try again.')
}

/**
 * Closes connections whose client does not read its response, which would stay in memory. It checks only while
 * requests are under way, so that an idle process is not woken.
 */
function dropStalled(app: FastifyInstance, timeoutMs: number, underWay: SlotSet<ServerResponse>): void {
  const stalled = findStalled(timeoutMs, taken)
  let timer: NodeJS.Timeout | undefined
  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }
  const check = () => {
    for (const socket of stalled(waiting())) socket.destroy()
    if (underWay.size === 0) stop()
  }
  function* waiting(): Iterable<Socket> {
    for (const { socket } of underWay) if (socket && socket.writableLength > 0) yield socket
  }
  app.addHook('onRequest', (_request, _reply, done) => {
    timer ??= setInterval(check, Math.min(MAX_LATE_MS, timeoutMs / 2)).unref()
    done()
  })
  app.addHook('onClose', async () => stop())
}
