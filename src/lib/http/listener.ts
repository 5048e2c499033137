// The conventions of every HTTP listener: request ids, error bodies, strict bodies and queries, 404 and 405, one log line.
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type RawRequestDefaultExpression as RawRequest,
} from 'fastify'
import type { Logger } from 'pino'
import { type JsonValue, roundNumbers } from '../json/read.ts'
import type { ObjectSchema, Schema } from '../shape/schema.ts'
import { SlotSet } from '../slot-set.ts'
import { bodyCheck, checkContentEncoding, checkMediaType, checkTransferEncoding, noBody, parseBody } from './body.ts'
import { enforceBounds, isComplete, type ListenerBounds, type ProxyBounds, serverOptions } from './bounds.ts'
import { handleBrokenRequests, takeOverNodesResponses } from './broken-requests.ts'
import { DEFAULT_BODY_LIMIT_BYTES, type ErrorOptions, sendError } from './error-responses.ts'
import { installGracefulStop } from './graceful-stop.ts'
import { noRoute, refuseWithoutRoute } from './no-route.ts'
import { readQuery } from './query.ts'
import { type Trace, traceOf } from './trace.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route itself checks `Content-Encoding`. */
    readsCompressed?: boolean
    /** What a body of the route may be, besides JSON. */
    mediaTypes?: readonly string[]
  }
  interface FastifyRequest {
    /** The bytes of the body, for signatures. */
    rawBody: Buffer | undefined
    /** The body with the text of its numbers, for routes that must read them exactly; `body` has them rounded. */
    exactBody: JsonValue | undefined
    /** The tenant of the key; in every log line. */
    tenant: string | undefined
    trace: Trace
  }
}

/** Called for every response, for metrics. */
export interface Observe {
  responded(request: FastifyRequest, reply: FastifyReply): void
  /** For a request that could not be read. */
  broken(status: number): void
}

// The length that Node allows for a request line, so that an id of any length gets its route's 404, after authentication.
const MAX_PARAM_LENGTH = 16 * 1024

export interface ListenerOptions extends Partial<Omit<ErrorOptions, 'log'>> {
  /** By default those of the HTTP server. */
  bounds?: ListenerBounds | ProxyBounds
}

/** A listener with these conventions and no routes. */
export function openListener(log: Logger, observe: Observe, options: ListenerOptions = {}): FastifyInstance {
  const { bounds, censor = (text) => text, pathNotFound } = options
  const underWay = new SlotSet<ServerResponse>()
  const unrouted = {
    log,
    observe: (status: number) => observe.broken(status),
    requestId: (request: RawRequest) => requestId(request, censor),
  }
  const broken = handleBrokenRequests({ ...unrouted, underWay, headerBytes: bounds?.headerBytes })
  const { http, ...serverBounds } = bounds ? serverOptions(bounds) : {}
  const app = Fastify({
    logger: false,
    bodyLimit: DEFAULT_BODY_LIMIT_BYTES,
    ...serverBounds,
    http: { ...http, requireHostHeader: false },
    genReqId: unrouted.requestId,
    rewriteUrl: (request) => decodableUrl(request.url!),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH, querystringParser: (raw) => raw as never },
    // While the listener closes, requests on open connections are served as usual.
    return503OnClosing: false,
    clientErrorHandler: broken.handle,
  })
  // Every method that Node parses, so that the uncommon ones get their 405, too.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  readStrictly(app)
  app.setErrorHandler((error, request, reply) => sendError({ log, censor, pathNotFound }, error, request, reply))
  app.setNotFoundHandler(noRoute)
  const isLeaving = installGracefulStop(app, underWay)
  app.decorateRequest('tenant', undefined)
  app.decorateRequest('trace')
  // Hooks that do not wait use the callback: a promise in a hook slows every request.
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply
    // Emitted however the request ends: with a response, or aborted by the client.
    raw.once('close', underWay.add(raw))
    broken.begun(raw)
    if (isLeaving()) raw.setHeader('connection', 'close')
    request.trace = traceOf(request.headers.traceparent)
    reply.header('x-request-id', request.id)
    // A cache would give it to the key of another tenant: the URLs are the same, and only `Authorization` protects by itself.
    // Files that are the same for all set their own.
    reply.header('cache-control', 'no-store')
    done()
  })
  takeOverNodesResponses(app, unrouted)
  if (bounds && isComplete(bounds)) enforceBounds(app, bounds, underWay)
  refuseWithoutRoute(app)
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    if (!request.routeOptions.config.readsCompressed) checkContentEncoding(request.headers['content-encoding'])
    checkTransferEncoding(request.headers['transfer-encoding'])
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    observe.responded(request, reply)
    logResponse(log, request, reply)
    done()
  })
  return app
}

/** Bodies are strict JSON, queries are read by their schema, and nothing is coerced. */
function readStrictly(app: FastifyInstance): void {
  app.decorateRequest('rawBody', undefined)
  app.decorateRequest('exactBody', undefined)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    checkMediaType(request.headers['content-type'], request.routeOptions.config.mediaTypes)
    request.rawBody = body
    // Whether a chunked body is empty is known only at its end.
    if (body.length === 0) return undefined
    request.exactBody = parseBody(body)
    return roundNumbers(request.exactBody)
  })
  app.setValidatorCompiler(({ schema, httpPart }) => validator(schema as Schema, httpPart))
  app.setSerializerCompiler(() => JSON.stringify)
}

/** A path that is not valid percent-encoded UTF-8 is taken literally, so that it gets a 404 after authentication. */
function decodableUrl(url: string): string {
  if (!url.includes('%')) return url
  const [path] = url.split(/[?#]/, 1)
  try {
    decodeURIComponent(path!)
    return url
  } catch {
    return path!.replaceAll('%', '%25') + url.slice(path!.length)
  }
}

/** The caller's request id, unless it is unsuitable for a header or a log. */
function requestId({ headers }: RawRequest, censor: (text: string) => string): string {
  const given = headers['x-request-id']
  const fits = typeof given === 'string' && /^[\x21-\x7e]{1,128}$/.test(given) && censor(given) === given
  return fits ? given : randomUUID()
}

function validator(
  schema: Schema,
  httpPart: string | undefined,
): (data: unknown) => { value: unknown } | { error: Error } {
  if (httpPart === 'querystring')
    return caught((data) => readQuery(schema as ObjectSchema, (data as string | null) ?? ''))
  if (httpPart !== 'body') return (value) => ({ value })
  const check = bodyCheck(schema)
  return caught((value) => {
    if (value === undefined || value === null) throw noBody()
    check(value)
    return value
  })
}

/** Returns the error instead of throwing it, as Fastify expects of a validator. */
function caught(read: (data: unknown) => unknown) {
  return (data: unknown) => {
    try {
      return { value: read(data) }
    } catch (error) {
      return { error: error as Error }
    }
  }
}

/** Logs one line per request: the route, never the URL, which may contain personal data. */
function logResponse(log: Logger, request: FastifyRequest, reply: FastifyReply): void {
  log.info({
    request_id: request.id,
    trace_id: request.trace.traceId,
    tenant: request.tenant,
    method: request.method,
    route: request.routeOptions.url,
    status: reply.statusCode,
    duration_ms: Math.round(reply.elapsedTime * 1000) / 1000,
  })
}

/** Every header of this name, with the name as it was sent. */
export function rawHeaders(request: IncomingMessage, name: string): { name: string; value: string }[] {
  const found = []
  const raw = request.rawHeaders
  for (let n = 0; n < raw.length; n += 2) {
    if (raw[n]!.length === name.length && raw[n]!.toLowerCase() === name)
      found.push({ name: raw[n]!, value: raw[n + 1]! })
  }
  return found
}
