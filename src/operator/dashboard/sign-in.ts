// Signing in with an operator key or with a link that works once, and signing out.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { createUnauthorizedThrottle } from '../../core/limits/unauthorized-throttle.ts'
import { recognizeOperator } from '../../core/tenants/operator-keys.ts'
import { callerOf } from '../../lib/http/client-address.ts'
import { cookieOf, dropCookie, isSecure, setCookie } from './cookies.ts'
import { formOf } from './forms.ts'
import { type Html, html } from './html.ts'
import { oidcPath } from './oidc-sign-in.ts'
import { endPersonSession } from './person-sessions.ts'
import { DOCUMENT_HEADERS, ownPath, sendDocument } from './send.ts'
import { beginSession, endSession, SESSION_HOURS, takeLink } from './sessions.ts'

export const SESSION_COOKIE = 'tundish_session'
// Slows programs that guess keys, and is enough for people who mistype one. Much lower than the limit of the APIs.
const FAILURES_A_SECOND = 0.5

/** Mounts `/sign-in` and `/sign-out` on the dashboard's scope, which accepts forms from its own pages only. */
export function mountSignIn(scope: FastifyInstance, app: App): void {
  const form = formWith(app.config.oidc?.issuer)
  const throttle = createUnauthorizedThrottle(app.clock, FAILURES_A_SECOND)
  const begin = async (request: FastifyRequest, reply: FastifyReply, operatorId: string) => {
    const token = await beginSession(app.db, operatorId)
    setCookie(reply, SESSION_COOKIE, token, { seconds: SESSION_HOURS * 3600, secure: isSecure(request) })
    app.log.info({ operator: operatorId }, 'Signed in to the dashboard.')
  }
  scope.get<{ Querystring: string }>('/sign-in', async (request, reply) => {
    const query = new URLSearchParams(request.query)
    // HEAD, which looks at where a link leads, does not use it up.
    const token = request.method === 'HEAD' ? null : query.get('token')
    if (token === null) {
      const failure = query.has('no-cookie') ? NO_COOKIE : undefined
      return sendDocument(request, reply, 'Sign in', form(ownPath(query.get('to')), failure))
    }
    const operatorId = await takeLink(app.db, token)
    if (operatorId === undefined) {
      // Most who follow a link again have signed in with it before.
      const open = cookieOf(request, SESSION_COOKIE) === undefined ? undefined : OPEN
      return sendDocument(request, reply.code(401), 'Sign in', form('/', USED_LINK, open))
    }
    await begin(request, reply, operatorId)
    // A page, not a redirect: after a link from another site the browser would not send the new cookie with a redirect.
    return sendDocument(request, reply.header('refresh', '0; url=/'), 'Signed in', SIGNED_IN)
  })
  scope.post('/sign-in', async (request, reply) => {
    const key = formOf(request).get('operator_key') ?? ''
    const to = ownPath(formOf(request).get('to'))
    const operator = /^[\x21-\x7e]{1,200}$/.test(key) ? await recognizeOperator(app.db, key) : undefined
    if (operator) {
      await begin(request, reply, operator.id)
      return reply.redirect(to, 303)
    }
    const waitMs = await throttle.delay(callerOf(request.raw, app.config.trustedProxies))
    if (waitMs === undefined) return sendDocument(request, reply.code(401), 'Sign in', form(to, WRONG_KEY))
    reply.code(429).header('retry-after', Math.ceil(waitMs / 1000))
    return sendDocument(request, reply, 'Sign in', form(to, TOO_MANY))
  })
  scope.post('/sign-out', async (request, reply) => {
    const token = cookieOf(request, SESSION_COOKIE)
    if (token !== undefined) {
      await endSession(app.db, token)
      await endPersonSession(app, token)
    }
    dropCookie(reply, SESSION_COOKIE)
    return reply.redirect('/sign-in', 303)
  })
}

/** The path of the sign-in page that continues to the path `to`. */
export const signInPath = (to: string) => (to === '/' ? '/sign-in' : `/sign-in?${new URLSearchParams({ to })}`)

/**
 * Redirects a request without a session to the sign-in page. A browser sends no SameSite=Strict cookie when it follows a link on
 * another site: such a request is sent a page that loads the same path again, this time as a request of the same site.
 */
export function redirectToSignIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const to = ownPath(request.url)
  if (request.headers['sec-fetch-site'] !== 'cross-site') {
    // A download would leave the sign-in on the screen: its page is opened instead.
    const page = to.replace(/[?&]csv=[^&]*$/, '')
    return reply
      .headers(DOCUMENT_HEADERS)
      .redirect(comesFromSignIn(request) ? withoutCookie(page) : signInPath(page), 303)
  }
  return sendDocument(request, reply.header('refresh', `0; url=${to}`), 'Opening', opening(to))
}

/** A page is opened from the sign-in only after one that succeeded, so the browser did not keep its cookie. */
function comesFromSignIn({ headers: { referer, host } }: FastifyRequest): boolean {
  const page = referer !== undefined && URL.canParse(referer) ? new URL(referer) : undefined
  return page?.host === host && page?.pathname === '/sign-in'
}

const withoutCookie = (to: string) => `/sign-in?${new URLSearchParams({ 'no-cookie': '', ...(to !== '/' && { to }) })}`

const opening = (to: string) =>
  html`<body class="alone"><main id="content"><h1>Opening the page</h1><p><a class="button" href="${to}">Open the page</a></p></main></body>`

const TOO_MANY = 'Too many failed attempts. Wait a minute, then try again.'
const NO_COOKIE =
  'The sign-in succeeded, but your browser did not keep the cookie of the session. Let it keep cookies of this site. Behind a proxy, X-Forwarded-Proto must be https only if the browser uses https.'
const WRONG_KEY = 'This operator key is not valid.'
const USED_LINK = 'This link has expired or was already used. Sign in with an operator key, or create a new link.'

const OPEN = html`<p><a class="button" href="/">Open the dashboard</a></p>`

const SIGNED_IN = html`<body class="alone"><main id="content"><h1>Signed in</h1>${OPEN}</main></body>`

const formWith = (provider: string | undefined) => (to: string, failure?: string, also?: Html) =>
  html`<body class="alone"><main id="content">
  <p class="brand"><img src="/favicon.svg" alt="" width="32" height="32">Tundish</p>
  <h1>Sign in</h1>
  ${failure && html`<p class="failed" role="alert">${failure}</p>`}
  ${also}
  ${provider && html`<p><a class="button main" href="${oidcPath(to)}">Sign in with ${new URL(provider).host}</a></p>`}
  <form method="post" action="/sign-in" class="stack">${to !== '/' && html`<input type="hidden" name="to" value="${to}">`}
    <label for="operator_key">Operator key</label>
    <input id="operator_key" type="password" name="operator_key" required maxlength="200" autocomplete="current-password" spellcheck="false" autofocus>
    <button class="button">Sign in</button>
  </form>
  <p class="quiet">Create a key with <code>tundish operator create --name Ada --role owner</code>, or a sign-in link
    with <code>tundish operator link KEY_ID</code>.</p>
  <p class="quiet"><a href="/docs">Reference</a> · <a href="/docs/guides">Guides</a> · <a href="/metrics">Metrics</a></p>
</main></body>`
