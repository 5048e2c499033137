// The three errors whose message is shown to a caller of the API or a user of the command line.

/** A refusal shown to the caller of an API; `message` is a whole sentence without internals. */
export class ApiError extends Error {
  readonly status: number
  /** A stable word in snake_case for programs, sent as `X-Error-Code`; each is listed with the API's description. */
  readonly code: string
  readonly extra: Record<string, unknown>
  readonly headers: Record<string, string>
  /** Part of what an operator does, such as a move, and no failure in the log. */
  isExpected = false

  constructor(
    status: number,
    code: string,
    message: string,
    more: { extra?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.extra = more.extra ?? {}
    this.headers = more.headers ?? {}
  }
}

/** A 400 for what a schema cannot check of a value. */
export const invalidValue = (message: string) => new ApiError(400, 'invalid_value', message)

/** A 400 for what a schema cannot check of a parameter of a query. */
export const invalidParameter = (message: string) => new ApiError(400, 'invalid_parameter', message)

/** A temporary refusal: 503 with `Retry-After`. */
export function tryLater(code: string, message: string, seconds = 1): ApiError {
  return new ApiError(503, code, message, { headers: { 'retry-after': String(seconds) } })
}

/** The command or its settings are wrong: one sentence that says what to do, exit code 2. */
export class UsageError extends Error {}

/** The command is valid, but its request is refused: one sentence, exit code 1. */
export class Refusal extends Error {}
