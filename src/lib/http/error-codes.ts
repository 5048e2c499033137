// The codes of `X-Error-Code`: how a table of them is declared, and those that every HTTP listener may send.

/** The meaning of each code. The key is sent as `X-Error-Code`, and never changes its meaning. */
export type ErrorCodes = Readonly<Record<string, { status: number; meaning: string }>>

export const HTTP_CODES: ErrorCodes = {
  body_incomplete: { status: 400, meaning: 'The body is shorter or longer than `Content-Length`.' },
  body_required: { status: 400, meaning: 'The body is missing.' },
  invalid_host: { status: 400, meaning: 'The request has no `Host` header, or more than one.' },
  invalid_http: { status: 400, meaning: 'The request is not valid HTTP/1.1.' },
  invalid_json: { status: 400, meaning: 'The body is not valid JSON in UTF-8, or repeats a key.' },
  invalid_parameter: { status: 400, meaning: 'A query parameter breaks its rule.' },
  invalid_property: { status: 400, meaning: 'A property of the body breaks its rule.' },
  invalid_query_string: {
    status: 400,
    meaning: 'The query string is not UTF-8 in percent-encoding, or contains U+0000.',
  },
  invalid_url: {
    status: 400,
    meaning: 'The URL does not begin with `/`, or contains characters that must be percent-encoded.',
  },
  parameter_required: { status: 400, meaning: 'A required query parameter is missing.' },
  property_required: { status: 400, meaning: 'A required property of the body is missing.' },
  repeated_parameter: { status: 400, meaning: 'A query parameter is given more than once.' },
  unknown_parameter: { status: 400, meaning: 'The endpoint has no such query parameter.' },
  unknown_property: { status: 400, meaning: 'The body has a property that the endpoint does not know.' },
  path_not_found: { status: 404, meaning: 'No endpoint has this path.' },
  method_not_allowed: { status: 405, meaning: 'The path has no such method: `Allow` lists those it has.' },
  request_timeout: { status: 408, meaning: 'The request did not arrive in time.' },
  body_too_large: { status: 413, meaning: 'The body is larger than the server accepts.' },
  uri_too_long: { status: 414, meaning: 'The URL is longer than the server accepts.' },
  unsupported_media_type: { status: 415, meaning: '`Content-Type` is not a type that the endpoint accepts.' },
  unsupported_content_encoding: { status: 415, meaning: '`Content-Encoding` is not identity.' },
  expectation_failed: { status: 417, meaning: '`Expect` is not 100-continue.' },
  headers_too_large: { status: 431, meaning: 'The headers are larger than the server accepts.' },
  internal_error: { status: 500, meaning: 'An error of the server; its log has it under the request id.' },
  database_timeout: { status: 503, meaning: 'The database took too long. Try again after `Retry-After` seconds.' },
  database_unavailable: {
    status: 503,
    meaning: 'The database cannot be reached, or a disk is full. Try again after `Retry-After` seconds.',
  },
  server_busy: { status: 503, meaning: 'Too many concurrent requests. Try again after `Retry-After` seconds.' },
  write_conflict: {
    status: 503,
    meaning: 'A concurrent request changed the same data; nothing was written. Try again after `Retry-After` seconds.',
  },
}
