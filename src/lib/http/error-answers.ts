// Turns whatever was thrown into the error answer of a request: status, sentence and code.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ApiError, tryLater } from '../errors.ts'
import { isClash, isTimeout, isUnavailable } from '../pg/errors.ts'
import { wrongMediaType } from './body.ts'
import { sendJson } from './send-json.ts'

export interface ErrorOptions {
  log: Logger
  /** Removes from a body what no error may repeat. */
  censor: (text: string) => string
}

const MIB = 1024 * 1024
export const DEFAULT_BODY_LIMIT_BYTES = MIB
const MAX_DISCARDED_BYTES = 8 * MIB

/** Answers `request` with what the caller may know of `error`; an unexpected one is logged with the request id. */
export function answerError(
  { log, censor }: ErrorOptions,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const answer = asApiError(error, request)
  if (answer.status >= 500) {
    const { id: request_id, tenant, trace } = request
    const route = request.routeOptions?.url
    log.error({ request_id, trace_id: trace?.traceId, tenant, route, err: error }, 'The request failed.')
  }
  const body = censor(JSON.stringify({ message: answer.message, ...answer.extra }))
  reply.code(answer.status).headers({ 'x-request-id': request.id, 'x-error-code': answer.code, ...answer.headers })
  // After a wrong body the framework closes the connection, and unread bytes would make the client lose our answer.
  // Unless there are many of them, they are read and discarded instead.
  if (Number(request.headers['content-length']) <= MAX_DISCARDED_BYTES) reply.removeHeader('connection')
  sendJson(reply, body)
}

function asApiError(error: unknown, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge(request)
  // What the framework finds wrong with a request is its body; such an error has a status.
  if (statusCode === 415) return wrongMediaType(request.headers['content-type'])
  if (statusCode === 400) return new ApiError(400, 'body_incomplete', 'The body is not as long as the request says.')
  const later = whyLater(error)
  if (later) return tryLater(...later)
  return new ApiError(500, 'internal_error', 'Internal error.')
}

/** Why the database could not do it now but may do it later, if that is so. */
function whyLater(error: unknown): [code: string, message: string] | undefined {
  if (isTimeout(error)) return ['database_timeout', 'The database took too long for this: try again, or ask for less.']
  if (isUnavailable(error)) return ['database_unavailable', 'The database cannot be reached at the moment: try again.']
  if (isClash(error))
    return ['write_conflict', 'A concurrent request changed the same data. Nothing was written: try again.']
  return undefined
}

function bodyTooLarge({ server }: FastifyRequest): ApiError {
  const { bodyLimit = DEFAULT_BODY_LIMIT_BYTES } = server.initialConfig
  const limit = bodyLimit % MIB === 0 ? `${bodyLimit / MIB} MiB` : `${bodyLimit} bytes`
  return new ApiError(413, 'body_too_large', `The body is larger than ${limit}.`)
}
