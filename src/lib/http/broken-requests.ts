// Responds to bytes that the HTTP parser refuses, without breaking off an earlier request of the same connection.
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { ApiError } from '../errors.ts'
import { timeSliced } from '../time-sliced.ts'
import { JSON_TYPE } from './send-json.ts'

/** What a response needs that the application does not send. */
export interface Unrouted {
  log: Logger
  /** Called with the status of each such response. */
  observe: (status: number) => void
  /** The caller's request id, or a new one. */
  requestId: (request: IncomingMessage) => string
}

export interface BrokenOptions extends Unrouted {
  /** The unfinished responses of all connections. */
  underWay: Iterable<ServerResponse>
  /** The limit of all headers with the request line; by default Node's. */
  headerBytes?: number
}

export interface BrokenRequests {
  /** The handler of the server's `clientError`. */
  handle(error: NodeJS.ErrnoException, socket: Duplex): void
  /** Call it with every new response: the last one of a connection closes it. */
  begun(response: ServerResponse): void
}

// What each code of Node's parser means for the sender. Its own messages change with its version.
const REQUEST_LINE = 'its first line must be a method, a URL without spaces, and HTTP/1.1'
const HEADER_LINE = 'a header must be one line of a name, a colon and a value'
const LENGTH = 'Content-Length must be one whole number'
const CHUNKS = 'the chunks of the body are malformed'
const FLAWS: Record<string, string> = {
  HPE_INVALID_METHOD: 'it does not begin with a method in capitals, such as GET',
  HPE_INVALID_CONSTANT: REQUEST_LINE,
  HPE_INVALID_VERSION: REQUEST_LINE,
  HPE_PAUSED_H2_UPGRADE: 'the server speaks HTTP/1.1, not HTTP/2',
  HPE_INVALID_HEADER_TOKEN: HEADER_LINE,
  HPE_CR_EXPECTED: HEADER_LINE,
  HPE_LF_EXPECTED: HEADER_LINE,
  HPE_INVALID_CONTENT_LENGTH: LENGTH,
  HPE_UNEXPECTED_CONTENT_LENGTH: LENGTH,
  HPE_INVALID_TRANSFER_ENCODING: 'Transfer-Encoding must be chunked, without Content-Length',
  HPE_INVALID_CHUNK_SIZE: CHUNKS,
  HPE_STRICT: CHUNKS,
  HPE_INVALID_EOF_STATE: 'the connection was closed before its end',
}
// What a wrongly configured proxy sends, by its first bytes.
const PROXY_PROTOCOL = ', but with the PROXY protocol, which is not supported: let the proxy send X-Forwarded-For'
const FOREIGN = [
  ['\x16\x03', ', but with TLS, which has to end at a proxy'],
  ['PROXY ', PROXY_PROTOCOL],
  ['\r\n\r\n\0\r\nQUIT\n', PROXY_PROTOCOL],
] as const
const CONNECT = new ApiError(405, 'method_not_allowed', 'CONNECT is not supported.', { headers: { Allow: '' } })

export function handleBrokenRequests({
  log,
  observe,
  requestId,
  underWay,
  headerBytes,
}: BrokenOptions): BrokenRequests {
  const lastOf = new WeakMap<Socket, ServerResponse>()
  // The parser reports every further byte of such a connection too.
  const known = new WeakSet<Socket>()
  const handle = timeSliced<Broken>(({ error, socket }) => {
    if (known.has(socket)) return
    known.add(socket)
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else respondAfterOthers(refusalOf(error, headerBytes), error, socket)
  })

  /** A complete request gets its response whatever follows it, because it may have had its effect. */
  function respondAfterOthers(refusal: ApiError, error: NodeJS.ErrnoException, socket: Socket): void {
    const begun = [...underWay].filter(({ req }) => req.socket === socket)
    const served = begun.filter(({ req, headersSent }) => req.complete || headersSent)
    // The head of a request was read if it is its body that is broken.
    const broken = begun.find((one) => !served.includes(one))
    const id = broken ? requestId(broken.req) : randomUUID()
    const last = lastOf.get(socket)
    if (last && served.includes(last)) {
      if (!last.headersSent) last.setHeader('connection', 'close')
      last.once('close', () => socket.destroySoon())
    } else {
      void Promise.all(served.map((one) => new Promise((resolve) => one.once('close', resolve)))).then(() =>
        respond(refusal, socket, id, error.code),
      )
    }
  }

  function respond(refusal: ApiError, socket: Socket, id: string, code?: string): void {
    observe(refusal.status)
    log.info({ request_id: id, status: refusal.status, code }, refusal.message)
    // A client that does not speak HTTP may not close the connection.
    socket.end(rawResponse(refusal, id), () => socket.destroy())
  }

  return {
    handle: (error, socket) => handle({ error, socket: socket as Socket }),
    begun: (response) => void lastOf.set(response.req.socket, response),
  }
}

function refusalOf(error: NodeJS.ErrnoException, headerBytes = maxHeaderSize): ApiError {
  const { code = '' } = error
  if (code === 'HPE_HEADER_OVERFLOW')
    return new ApiError(431, 'headers_too_large', `The headers are larger than ${headerBytes} bytes.`)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ApiError(408, 'request_timeout', 'The request did not arrive in time.')
  if (code === 'HPE_INVALID_URL')
    return new ApiError(
      400,
      'invalid_url',
      'The URL must begin with a slash and contain only visible ASCII characters: percent-encode all others.',
    )
  const flaw = FLAWS[code]
  const foreign = code === 'HPE_INVALID_METHOD' ? foreignIn(error) : ''
  return new ApiError(400, 'invalid_http', `This is not a valid HTTP request${flaw ? `: ${flaw}${foreign}` : ''}.`)
}

/** `rawPacket`: the bytes that the parser was given. */
function foreignIn({ rawPacket }: NodeJS.ErrnoException & { rawPacket?: Buffer }): string {
  const text = rawPacket?.toString('latin1') ?? ''
  return FOREIGN.find(([first]) => text.startsWith(first))?.[1] ?? ''
}

interface Broken {
  error: NodeJS.ErrnoException
  socket: Socket
}

/** Responds to the requests that Node would respond to by itself, without a body. */
export function takeOverNodesResponses(app: FastifyInstance, { log, observe, requestId }: Unrouted): void {
  const { server } = app
  // `Expect` with anything but 100-continue.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    const id = requestId(request)
    observe(CONNECT.status)
    log.info({ request_id: id, method: request.method, status: CONNECT.status })
    socket.on('error', () => {})
    socket.end(rawResponse(CONNECT, id), () => socket.destroy())
  })
  // A client may close its sending side after the last request, and still wait for the response.
  Object.assign(server, { httpAllowHalfOpen: true })
  app.addHook('onRequest', ({ headers, raw }, _reply, done) => {
    if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
      throw new ApiError(417, 'expectation_failed', 'The server supports Expect only with 100-continue.')
    }
    checkHost(raw)
    done()
  })
}

/** RFC 9112, section 3.2: exactly one `Host` header, which HTTP/1.0 may omit. */
function checkHost({ rawHeaders, httpVersion }: IncomingMessage): void {
  let hosts = 0
  for (let n = 0; n < rawHeaders.length; n += 2) {
    if (rawHeaders[n]!.length === 4 && rawHeaders[n]!.toLowerCase() === 'host') hosts += 1
  }
  if (hosts > 1 || (hosts === 0 && httpVersion !== '1.0')) {
    throw new ApiError(400, 'invalid_host', `A request must have exactly one Host header, got ${hosts}.`)
  }
}

function rawResponse({ status, code, message, headers }: ApiError, id: string): string {
  const body = JSON.stringify({ message })
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${JSON_TYPE}`,
    `X-Request-Id: ${id}`,
    `X-Error-Code: ${code}`,
    `Date: ${new Date().toUTCString()}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
