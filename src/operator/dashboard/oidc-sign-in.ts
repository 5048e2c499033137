// Signing in at the identity provider: the way there and the way back.
import { createHmac } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { cookieOf, dropCookie, isSecure, setCookie } from './cookies.ts'
import { type Html, html } from './html.ts'
import { type Begun, type IdentityProvider, isRefused, type Refused } from './identity-provider.ts'
import { beginPersonSession } from './person-sessions.ts'
import { DOCUMENT_HEADERS, ownPath, sendDocument } from './send.ts'
import { SESSION_HOURS } from './sessions.ts'

const BEGUN_COOKIE = 'tundish_sign_in'
const PATH = '/sign-in/oidc'
const CALLBACK = `${PATH}/callback`
// For a person to type a password and a second factor.
const BEGUN_SECONDS = 10 * 60
const CONTEXT = 'sign-in that was begun'
// Browsers keep cookies of 4,096 bytes. Sealed and as base64url it is a third larger.
const BEGUN_BYTES = 2800
const TO_BYTES = 2000

interface Kept extends Begun {
  to: string
  /** When it ends: a browser may keep a cookie for longer. */
  untilMs: number
}

/** Mounts the two routes. What was begun is sealed in a cookie, so that any process may end it. */
export function mountOidc(scope: FastifyInstance, app: App, provider: IdentityProvider, sessionCookie: string): void {
  scope.get<{ Querystring: string }>(PATH, async (request, reply) => {
    const result = await provider.begin(`${originOf(request)}${CALLBACK}`)
    if (isRefused(result)) return refuse(app, request, reply, result)
    const to = shortEnough(ownPath(new URLSearchParams(request.query).get('to')))
    const kept = { ...result.begun, to, untilMs: Date.now() + BEGUN_SECONDS * 1000 }
    keepBegun(app, request, reply, [kept, ...begunOf(app, request)])
    return reply.headers(DOCUMENT_HEADERS).redirect(result.url.href, 303)
  })
  scope.get(CALLBACK, async (request, reply) => {
    const all = begunOf(app, request)
    const address = new URL(request.url, originOf(request))
    const state = address.searchParams.get('state')
    const begun = all.find((one) => one.state === state)
    // It is used up, also by a sign-in that fails. What other tabs have begun stays.
    const others = all.filter((one) => one !== begun)
    if (begun) keepBegun(app, request, reply, others)
    if (begun && asksToBeginAgain(address)) return reply.headers(DOCUMENT_HEADERS).redirect(oidcPath(begun.to), 303)
    if (all.length === 0) return sendDocument(request, reply.code(400), 'Sign in', page(NOT_BEGUN, OPEN))
    // The check of another state is the library's.
    const { to, ...known } = begun ?? all[0]!
    const token = tokenOf(known, address)
    const result = await beginPersonSession(app, token, () => provider.finish(address, known))
    if (result === 'ended') return sendDocument(request, reply.code(400), 'Sign in', page(NOT_BEGUN, OPEN))
    if (result !== 'joined') {
      if (isRefused(result)) return refuse(app, request, reply, result)
      app.log.info({ person: result.subject }, 'Signed in to the dashboard.')
      if (result.tokens.refresh === undefined) app.log.warn({ person: result.subject }, NO_REFRESH_TOKEN)
    }
    setCookie(reply, sessionCookie, token, { seconds: SESSION_HOURS * 3600, secure: isSecure(request) })
    // A page, not a redirect: after a link from another site the browser would not send the new cookie with a redirect.
    return sendDocument(request, reply.header('refresh', `0; url=${to}`), 'Signed in', signedIn(to))
  })
}

/** The address of the way there, which leads on to the path `to`. */
export const oidcPath = (to: string) => (to === '/' ? PATH : `${PATH}?${new URLSearchParams({ to })}`)

/** The listener refuses a `Host` that is not its own, and the provider an address that was not registered there. */
const originOf = (request: FastifyRequest) => `${isSecure(request) ? 'https' : 'http'}://${request.headers.host}`

/** Keycloak's response to a form that was left open while the person signed in in another tab: they come back without another form. */
const asksToBeginAgain = ({ searchParams }: URL): boolean =>
  searchParams.get('error') === 'temporarily_unavailable' &&
  searchParams.get('error_description') === 'authentication_expired'

/** The token of the session: the same for each request with this code, and known to this browser alone. */
const tokenOf = ({ verifier }: Begun, { search }: URL) =>
  createHmac('sha256', verifier).update(`session ${search}`).digest('base64url')

/** What was begun in this browser, the newest first: people sign in in several tabs at once. */
function begunOf({ seal }: App, request: FastifyRequest): Kept[] {
  const value = cookieOf(request, BEGUN_COOKIE)
  if (value === undefined) return []
  try {
    const kept = JSON.parse(seal.open(Buffer.from(value, 'base64url'), CONTEXT)) as Kept | Kept[]
    return [kept].flat().filter(({ untilMs }) => untilMs > Date.now())
  } catch {
    return []
  }
}

/** Keeps as many of them, from the first on, as a browser does. */
function keepBegun({ seal }: App, request: FastifyRequest, reply: FastifyReply, all: Kept[]): void {
  while (Buffer.byteLength(JSON.stringify(all)) > BEGUN_BYTES) all.pop()
  const value = seal.seal(JSON.stringify(all), CONTEXT).toString('base64url')
  if (all.length === 0) dropCookie(reply, BEGUN_COOKIE)
  // Lax: the way back is a link of the provider's site.
  else setCookie(reply, BEGUN_COOKIE, value, { seconds: BEGUN_SECONDS, secure: isSecure(request), sameSite: 'Lax' })
}

/** The path without its query if it is too long for a cookie. */
const shortEnough = (to: string) => [to, to.split('?')[0]!].find((path) => Buffer.byteLength(path) <= TO_BYTES) ?? '/'

function refuse({ log, config }: App, request: FastifyRequest, reply: FastifyReply, refused: Refused): FastifyReply {
  const { why, detail, sent } = refused
  log.warn({ request_id: request.id, why, detail, sent }, 'Nobody was signed in.')
  const provider = new URL(config.oidc!.issuer).host
  if (why === 'unreachable')
    return sendDocument(
      request,
      reply.code(503),
      'Sign in',
      page(`${provider} cannot be reached. Try again in a minute.`),
    )
  const sentences = {
    'no role': `${detail}, none of your groups at ${provider} has a role here. Ask the owner of this installation for one.`,
    'no claim': `${detail}, ${provider} did not send the claim "${config.oidc!.claim}", so it gives you no role here. The owner of this installation finds what it sent in the log under request ID ${request.id}.`,
    unverified: `${detail}, ${provider} has not verified your e-mail address, so it gives you no role here.`,
    refused: `The sign-in at ${provider} failed, and nobody was signed in. The log has the reason under request ID ${request.id}.`,
  }
  return sendDocument(request, reply.code(403), 'Sign in', page(sentences[why]))
}

const NO_REFRESH_TOKEN =
  'The identity provider gave no refresh token, so this session ends with the access token, or after five minutes if groups are in the ID token alone. Let it give refresh tokens.'

const NOT_BEGUN =
  'This sign-in was not begun in this browser, took too long, or has ended before. Sign in again. If that does not help, let your browser keep cookies of this site.'

const OPEN = html` <a class="button" href="/">Open the dashboard</a>`

const page = (sentence: string, also?: Html) =>
  html`<body class="alone"><main id="content"><h1>Not signed in</h1><p class="failed" role="alert">${sentence}</p><p><a class="button" href="/sign-in">Sign in</a>${also}</p></main></body>`

const signedIn = (to: string) =>
  html`<body class="alone"><main id="content"><h1>Signed in</h1><p><a class="button" href="${to}">Open the dashboard</a></p></main></body>`
