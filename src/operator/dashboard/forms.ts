// Parses the bodies of forms, and refuses forms that were not sent from the dashboard's own pages.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../lib/errors.ts'
import { type Html, html } from './html.ts'
import { withIsoDays } from './typed-days.ts'

const MAX_FORM_BYTES = 64 * 1024

/** Makes the scope accept forms as bodies, and refuse changes that another origin made the browser send (CSRF). */
export function acceptForms(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
  )
  scope.addContentTypeParser('*', async () => {
    throw new ApiError(415, 'unsupported_media_type', 'The body must be a form.')
  })
  scope.addHook('onRequest', async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') requireOwnOrigin(request)
  })
}

/** Browsers send `Origin` with every form, and `Sec-Fetch-Site` says which site sent it. A page can set neither. */
function requireOwnOrigin({ headers }: FastifyRequest): void {
  const { origin, host } = headers
  const site = headers['sec-fetch-site']
  const own = host !== undefined && (origin === `http://${host}` || origin === `https://${host}`)
  const isOtherSite = site !== undefined && site !== 'same-origin'
  if (own && !isOtherSite) return
  const hint = isOtherSite ? '' : ` ${BEHIND_A_PROXY}`
  throw new ApiError(403, 'other_origin', `This can only be done from the dashboard itself.${hint}`)
}

const BEHIND_A_PROXY =
  'Behind a proxy, let it pass on the Host of the browser, with its port: in nginx, proxy_set_header Host $http_host.'

// The caller's own id of a customer: blanks are part of it.
const EXACT = 'external_id'

/** The fields of a form, without the blanks around them that are pasted along. */
export const formOf = ({ body }: FastifyRequest): URLSearchParams => {
  const form = new URLSearchParams()
  if (body instanceof URLSearchParams)
    for (const [name, value] of body) form.append(name, name === EXACT ? value : value.trim())
  return withIsoDays(form)
}

export const SHOWN = 'shown'

/** The field with the values that a form of settings shows. */
export const shownField = (values: Record<string, string>): Html =>
  html`<input type="hidden" name="${SHOWN}" value="${new URLSearchParams(values).toString()}">`

/** Whether one of the fields is other than the form showed it. The others are not saved: another tab may have changed them since. */
export function isChanged(form: URLSearchParams, ...names: string[]): boolean {
  const shown = form.get(SHOWN)
  return shown === null || names.some((name) => form.get(name) !== new URLSearchParams(shown).get(name))
}
