// What every HTTP answer of ours has in common: request ids, error bodies, strict bodies and queries, 404 and 405, one log line.
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, METHODS, type ServerResponse, STATUS_CODES } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type HTTPMethods } from 'fastify'
import type { Logger } from 'pino'
import { ApiError, tryLater } from '../errors.ts'
import { JsonBytes } from '../json/buffer.ts'
import { isClash, isTimeout, isUnavailable } from '../pg/db.ts'
import type { ObjectSchema, Schema } from '../shape/schema.ts'
import { SlotSet } from '../slot-set.ts'
import { timeSliced } from '../time-sliced.ts'
import { bodyCheck, checkMediaType, noBody, parseBody, wrongMediaType } from './body.ts'
import { keepBounds, type ListenerBounds, serverOptions } from './bounds.ts'
import { installGracefulStop } from './graceful-stop.ts'
import { readQuery } from './query.ts'
import { type Trace, traceOf } from './trace.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it came, for those who must read its numbers exactly. */
    rawBody: Buffer | undefined
    /** Whose key opened the door; in every log line. */
    tenant: string | undefined
    trace: Trace
  }
}

/** Who watches a listener. */
export interface Observe {
  answered(request: FastifyRequest, reply: FastifyReply): void
  /** A request that could not be read. */
  broken(status: number): void
}

const MIB = 1024 * 1024
const BODY_LIMIT_BYTES = MIB
const MOST_DROPPED_BYTES = 8 * MIB
// As long as Node lets a whole request line be: an id of any length is answered by its route, 404, behind the key.
const MAX_PARAM_LENGTH = 16 * 1024
const JSON_TYPE = 'application/json; charset=utf-8'

/** A listener with our conventions and no routes; without `bounds` it has those of the HTTP server. */
export function openListener(log: Logger, observe: Observe, bounds?: ListenerBounds): FastifyInstance {
  const broken = timeSliced<Broken>((one) => answerBrokenRequest({ log, observe }, one))
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT_BYTES,
    ...(bounds && serverOptions(bounds)),
    genReqId: requestId,
    rewriteUrl: (request) => decodableUrl(request.url!),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH, querystringParser: (raw) => raw as never },
    // While the listener closes, requests on connections that are still open are served like any other.
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => broken({ error, socket: socket as Broken['socket'] }),
  })
  // Every method that Node reads, so that the strange ones get their 405 too.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  app.decorateRequest('rawBody', undefined)
  app.decorateRequest('tenant', undefined)
  app.decorateRequest('trace')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    checkMediaType(request.headers['content-type'])
    request.rawBody = body
    // A chunked body tells only at its end that there was none.
    return body.length === 0 ? undefined : parseBody(body)
  })
  app.setValidatorCompiler(({ schema, httpPart }) => validator(schema as Schema, httpPart))
  app.setSerializerCompiler(() => JSON.stringify)
  app.setErrorHandler((error, request, reply) => answerError(log, error, request, reply))
  app.setNotFoundHandler(noRoute)
  const underWay = new SlotSet<ServerResponse>()
  const isLeaving = installGracefulStop(app, underWay)
  app.addHook('onRequest', async (request, reply) => {
    const { raw } = reply
    // However it ends: answered, or broken off by the client.
    raw.once('close', underWay.add(raw))
    if (isLeaving()) raw.setHeader('connection', 'close')
    request.trace = traceOf(request.headers.traceparent)
    reply.header('x-request-id', request.id)
  })
  if (bounds) keepBounds(app, bounds, underWay)
  // Behind the door's key and before the body: where there is nothing, no body is wrong.
  app.addHook('preParsing', async (request) => {
    if (request.is404) await noRoute()
  })
  app.addHook('onResponse', async (request, reply) => {
    observe.answered(request, reply)
    logAnswer(log, request, reply)
  })
  return app
}

export async function noRoute(): Promise<never> {
  throw new ApiError(404, 'path_not_found', 'There is nothing at this path.')
}

/** Answers every other method of the paths that the caller registers on `app` with 405 and `Allow`. Call it first. */
export function refuseOtherMethods(app: FastifyInstance): void {
  const methods = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set()
    methods.set(url, known)
    for (const one of [method].flat()) known.add(one)
  })
  // A plugin runs after the function that registers it, so it sees every route of its parent.
  app.register(async (others) => {
    for (const [url, known] of [...methods]) {
      const allow = [...known].sort().join(', ')
      const method = app.supportedMethods.filter((one) => !known.has(one)) as HTTPMethods[]
      others.route({
        method,
        url: relative(others.prefix, url),
        schema: { hide: true } as never,
        // A route's own hook runs behind the door's, and before the body is looked at.
        onRequest: refuse(allow),
        handler: noRoute,
      })
    }
  })
}

const relative = (prefix: string, url: string) => (url.startsWith(prefix) ? url.slice(prefix.length) : url)

const refuse = (allow: string) => async (request: FastifyRequest) => {
  throw new ApiError(405, 'method_not_allowed', `${request.method} is not allowed here: use ${allow}.`, {
    headers: { allow },
  })
}

/** Sends JSON that is ready; when it is on its way its memory is freed. */
export function sendJson(reply: FastifyReply, json: string | Buffer | JsonBytes): FastifyReply {
  reply.header('content-type', JSON_TYPE)
  if (!(json instanceof JsonBytes)) return reply.send(json)
  reply.raw.once('finish', () => json.free())
  return reply.send(json.written())
}

/** A path that is no percent-encoding of UTF-8 is taken for what it says, so that it still comes to a door: its 404. */
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

function requestId(request: { headers: Record<string, string | string[] | undefined> }): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID()
}

function validator(
  schema: Schema,
  httpPart: string | undefined,
): (data: unknown) => { value: unknown } | { error: Error } {
  if (httpPart === 'querystring')
    return guarded((data) => readQuery(schema as ObjectSchema, (data as string | null) ?? ''))
  if (httpPart !== 'body') return (value) => ({ value })
  const check = bodyCheck(schema)
  return guarded((value) => {
    if (value === undefined || value === null) throw noBody()
    check(value)
    return value
  })
}

function guarded(read: (data: unknown) => unknown) {
  return (data: unknown) => {
    try {
      return { value: read(data) }
    } catch (error) {
      return { error: error as Error }
    }
  }
}

function answerError(log: Logger, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const answer = asApiError(error, request)
  if (answer.status >= 500) {
    const { id: request_id, tenant, trace } = request
    const route = request.routeOptions?.url
    log.error({ request_id, trace_id: trace?.traceId, tenant, route, err: error }, 'The request failed.')
  }
  const body = JSON.stringify({ message: answer.message, ...answer.extra })
  reply.code(answer.status).headers({ 'x-request-id': request.id, 'x-error-code': answer.code, ...answer.headers })
  // After a wrong body the framework closes the connection, and what is still on its way would take our answer from the
  // client. Unless there is much of it, it is read and dropped instead.
  if (Number(request.headers['content-length']) <= MOST_DROPPED_BYTES) reply.removeHeader('connection')
  sendJson(reply, body)
}

/** What the caller may know of an error; anything unexpected is "Internal error." */
function asApiError(error: unknown, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge(request)
  // What the framework finds wrong with a request is its body; such an error bears a status.
  if (statusCode === 415) return wrongMediaType(request.headers['content-type'])
  if (statusCode === 400) return new ApiError(400, 'body_incomplete', 'The body is not as long as the request says.')
  const later = whyLater(error)
  if (later) return tryLater(...later)
  return new ApiError(500, 'internal_error', 'Internal error.')
}

/** Why the database could not do it now and may do it later, if that is so. */
function whyLater(error: unknown): [code: string, message: string] | undefined {
  if (isTimeout(error)) return ['database_timeout', 'The database took too long for this: try again, or ask for less.']
  if (isUnavailable(error)) return ['database_unavailable', 'The database cannot be reached at the moment: try again.']
  if (isClash(error))
    return ['write_conflict', 'A concurrent request changed the same data. Nothing was written: try again.']
  return undefined
}

function bodyTooLarge(request: FastifyRequest): ApiError {
  return new ApiError(413, 'body_too_large', `The body is larger than ${bodyLimit(request)}.`)
}

function bodyLimit({ server }: FastifyRequest): string {
  const { bodyLimit = BODY_LIMIT_BYTES } = server.initialConfig
  return bodyLimit % MIB === 0 ? `${bodyLimit / MIB} MiB` : `${bodyLimit} bytes`
}

/** One line a request: the route, never the URL, which may hold personal data. */
function logAnswer(log: Logger, request: FastifyRequest, reply: FastifyReply): void {
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

const BROKEN: Record<string, ApiError> = {
  HPE_INVALID_URL: new ApiError(400, 'invalid_url', 'The address has to be ASCII: percent-encode everything else.'),
  HPE_HEADER_OVERFLOW: new ApiError(431, 'headers_too_large', 'The headers are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(408, 'request_timeout', 'The request did not arrive in time.'),
}
const NOT_HTTP = new ApiError(400, 'invalid_http', 'This is not a valid HTTP request.')

interface Broken {
  error: NodeJS.ErrnoException
  socket: ServerResponse['socket'] & object
}

/** Answers what is not HTTP, for which there is no request yet. */
function answerBrokenRequest({ log, observe }: { log: Logger; observe: Observe }, { error, socket }: Broken): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, code, message } = BROKEN[error.code ?? ''] ?? NOT_HTTP
  const body = JSON.stringify({ message })
  const id = randomUUID()
  observe.broken(status)
  log.info({ request_id: id, status, code: error.code })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${JSON_TYPE}\r\nX-Request-Id: ${id}\r\nX-Error-Code: ${code}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    // Whoever sends what is not HTTP may not know when to leave either.
    () => socket.destroy(),
  )
}

/** The values of every header of this name, with its name as it was sent. */
export function rawHeaders(request: IncomingMessage, name: string): { name: string; value: string }[] {
  const found = []
  const raw = request.rawHeaders
  for (let n = 0; n < raw.length; n += 2) {
    if (raw[n]!.length === name.length && raw[n]!.toLowerCase() === name)
      found.push({ name: raw[n]!, value: raw[n + 1]! })
  }
  return found
}
