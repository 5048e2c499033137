// The descriptions of error responses: one body, `{"message"}`, and a sentence for each status.
import { type Schema, Type } from '../shape/schema.ts'

/** Every error body has a message; those of some endpoints have more. */
export const problem = Type.Object(
  { message: Type.String({ description: 'A sentence for the caller: the field, the rule, and the value.' }) },
  { title: 'Problem' },
)

const DESCRIPTIONS: Record<number, string> = {
  400: 'The request is malformed or breaks a rule.',
  401: 'The secret key is missing, misnamed, wrong or revoked.',
  403: 'The key may not do this: the message names the scope that it lacks.',
  404: 'The object does not exist, or belongs to another tenant.',
  408: 'The request did not arrive in time. Nothing was written.',
  409: 'The state of the object does not allow it.',
  413: 'The body is larger than the server accepts: 1 MiB unless configured otherwise.',
  415: 'The body is not application/json.',
  429: 'Too many requests: wait as long as `Retry-After` says.',
  500: 'Internal error. The log has it under the request id.',
  503: 'A service that the server depends on cannot be reached: try again after `Retry-After` seconds.',
}

/** The descriptions of these error statuses, and of those that every endpoint may return. */
export function problems(...statuses: number[]): Record<number, object> {
  return Object.fromEntries([...statuses, 429, 500, 503].map((status) => [status, problemResponse(status)]))
}

/** One error response, by default with the common body. */
export function problemResponse(status: number, schema: Schema = problem): object {
  const retry = { 'Retry-After': { type: 'integer', description: 'Seconds to wait.' } }
  return {
    description: DESCRIPTIONS[status],
    ...((status === 429 || status === 503) && { headers: retry }),
    content: { 'application/json': { schema } },
  }
}
