// Turns a thrown error into the response of a request: status, sentence and code.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ApiError, tryLater } from '../errors.ts'
import { isClash, isMoving, isTimeout, isUnavailable } from '../pg/errors.ts'
import { wrongMediaType } from './body.ts'
import { sendJson } from './send-json.ts'

export interface ErrorOptions {
  log: Logger
  /** Removes secrets from a message. */
  censor: (text: string) => string
  /** Responds to a request for a path that does not exist; undefined: with the usual body. */
  pathNotFound?: ((request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined) | undefined
}

const MIB = 1024 * 1024
export const DEFAULT_BODY_LIMIT_BYTES = MIB
const MAX_DISCARDED_BYTES = 8 * MIB

/** Sends the error response; an unexpected error is logged with the request id and hidden from the caller. */
export function sendError(
  { log, censor, pathNotFound }: ErrorOptions,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (request.is404 && pathNotFound?.(request, reply)) return
  const response = asApiError(error, request)
  if (response.status >= 500) {
    const { id: request_id, tenant, trace } = request
    const route = request.routeOptions?.url
    const details = { request_id, trace_id: trace?.traceId, tenant, route }
    if (response.isExpected || isMoving(error)) log.info(details, 'The request was refused: its tenant is being moved.')
    else log.error({ ...details, err: error }, 'The request failed.')
  }
  const body = censor(JSON.stringify({ message: response.message, ...response.extra }))
  reply
    .code(response.status)
    .headers({ 'x-request-id': request.id, 'x-error-code': response.code, ...response.headers })
  // After a wrong body the framework closes the connection, and unread bytes would make the client lose the response. So up
  // to a limit they are read and discarded.
  if (Number(request.headers['content-length']) <= MAX_DISCARDED_BYTES) reply.removeHeader('connection')
  sendJson(reply, body)
}

function asApiError(error: unknown, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge(request)
  // The framework's own errors have a status and concern the body.
  if (statusCode === 415) return wrongMediaType(request.headers['content-type'])
  if (statusCode === 400)
    return new ApiError(400, 'body_incomplete', 'The body is shorter or longer than Content-Length.')
  if (hasGone(error, request)) return new ApiError(400, 'body_incomplete', 'The body broke off.')
  const later = whyLater(error)
  if (later) return tryLater(...later)
  return new ApiError(500, 'internal_error', 'Internal error.')
}

/** Whether the caller closed the connection while a body was read that the framework does not read itself. */
export const hasGone = (error: unknown, { raw }: FastifyRequest): boolean => error === raw.errored

/** The code and message of a temporary error of the database or of a full disk; undefined for other errors. */
export function whyLater(error: unknown): [code: string, message: string] | undefined {
  if (isTimeout(error)) return ['database_timeout', 'The database took too long: try again, or request less.']
  if (isUnavailable(error)) return ['database_unavailable', 'The database cannot be reached at the moment: try again.']
  // Of a ledger that is written before the commit.
  if (isDiskFull(error)) return ['database_unavailable', 'The disk of the server is full: try again.']
  if (isClash(error))
    return ['write_conflict', 'A concurrent request changed the same data. Nothing was written: try again.']
  return undefined
}

const isDiskFull = (error: unknown) => ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')

function bodyTooLarge({ server }: FastifyRequest): ApiError {
  const { bodyLimit = DEFAULT_BODY_LIMIT_BYTES } = server.initialConfig
  const limit = bodyLimit % MIB === 0 ? `${bodyLimit / MIB} MiB` : `${bodyLimit} bytes`
  return new ApiError(413, 'body_too_large', `The body is larger than ${limit}.`)
}
