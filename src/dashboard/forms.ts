// Forms: read from a body, and refused unless the dashboard's own page sent them.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../lib/errors.ts'

const MOST_FORM_BYTES = 64 * 1024

/** Takes forms as bodies, and refuses every change that another origin asked the browser to send. */
export function takeForms(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MOST_FORM_BYTES },
    async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
  )
  scope.addContentTypeParser('*', async () => {
    throw new ApiError(415, 'unsupported_media_type', 'The body must be a form.')
  })
  scope.addHook('onRequest', async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') requireOwnOrigin(request)
  })
}

/** Browsers send `Origin` with every form, and `Sec-Fetch-Site` says whose page it was; neither can be set by a page. */
function requireOwnOrigin({ headers }: FastifyRequest): void {
  const { origin, host } = headers
  const site = headers['sec-fetch-site']
  const own = host !== undefined && (origin === `http://${host}` || origin === `https://${host}`)
  if (!own || (site !== undefined && site !== 'same-origin'))
    throw new ApiError(403, 'other_origin', 'This can only be done from the dashboard itself.')
}

export const formOf = ({ body }: FastifyRequest): URLSearchParams =>
  body instanceof URLSearchParams ? body : new URLSearchParams()
