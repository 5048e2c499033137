// The dashboard: web pages on the operator's listener, each made from operations of the operator's API.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { DAY_S } from '../../lib/days.ts'
import { ApiError } from '../../lib/errors.ts'
import { callerOf } from '../../lib/http/client-address.ts'
import { requireRight } from '../admin/reach.ts'
import { serveDashboardAssets } from './assets.ts'
import { chooseShard } from './choose-shard.ts'
import { cookieOf, isSecure, setCookie } from './cookies.ts'
import { refusalPage, refusePathPrefix, showError } from './errors.ts'
import { acceptForms, formOf } from './forms.ts'
import { type IdentityProvider, openIdentityProvider } from './identity-provider.ts'
import { FORM_NEEDS, needOf, PAGE_NEEDS } from './needs.ts'
import { mountOidc } from './oidc-sign-in.ts'
import { findPersonSession } from './person-sessions.ts'
import { actions, type Form, pages, type Route } from './routes.ts'
import { DOCUMENT_HEADERS, ownPath, sendDocument, THEME_COOKIE } from './send.ts'
import { findSession, type Session } from './sessions.ts'
import { writeCsv } from './sheet.ts'
import { type Page, shell } from './shell.ts'
import { mountSignIn, redirectToSignIn, SESSION_COOKIE } from './sign-in.ts'
import { openView, type View } from './view.ts'

const THEME_SECONDS = 365 * DAY_S

interface Dashboard extends App {
  /** Undefined where people sign in with keys only. */
  provider: IdentityProvider | undefined
}

/** Mounts the dashboard on `scope`. */
export async function dashboard(scope: FastifyInstance, parts: App): Promise<void> {
  const { oidc } = parts.config
  const app: Dashboard = { ...parts, provider: oidc && openIdentityProvider(oidc, parts.clock) }
  scope.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true } as object
  })
  acceptForms(scope)
  scope.setErrorHandler((error, request, reply) => showError(app, error, request, reply))
  scope.addHook('onRequest', refusePathPrefix)
  scope.addHook('onRequest', chooseShard(app.config.shardDashboards))
  serveDashboardAssets(scope)
  mountSignIn(scope, app)
  if (app.provider) mountOidc(scope, app, app.provider, SESSION_COOKIE)
  scope.post('/theme', async (request, reply) => {
    const theme = formOf(request).get('theme') ?? ''
    const value = theme === 'light' || theme === 'dark' ? theme : 'system'
    setCookie(reply, THEME_COOKIE, value, { seconds: THEME_SECONDS, secure: isSecure(request) })
    return reply.redirect(ownPath(formOf(request).get('back')), 303)
  })
  for (const [path, page] of Object.entries(pages))
    scope.get(path, (request, reply) => showPage(app, page, request, reply))
  for (const [path, action] of Object.entries(actions))
    scope.post(path, (request, reply) => submitForm(app, action, request, reply))
}

async function showPage(app: Dashboard, page: Route, request: FastifyRequest, reply: FastifyReply) {
  const session = await sessionOf(app, request)
  if (!session) return redirectToSignIn(request, reply)
  requireAccess(PAGE_NEEDS, request, session)
  const view = await viewOf(app, session, request)
  const shown = await orRefusal(page(view), request, reply)
  if (typeof shown === 'string') return reply.headers(DOCUMENT_HEADERS).redirect(ownPath(shown), 303)
  const csv = view.query.get('csv')
  if (csv !== null && reply.statusCode === 200) return sendCsv(view, csv, reply)
  return sendDocument(request, reply, shown.title, shell(view, shown))
}

async function submitForm(app: Dashboard, action: Form, request: FastifyRequest, reply: FastifyReply) {
  const session = await sessionOf(app, request)
  if (!session) throw new ApiError(401, 'unauthorized', 'Your session has ended, and nothing was done. Sign in again.')
  requireAccess(FORM_NEEDS, request, session)
  const view = await viewOf(app, session, request)
  const result = await orRefusal(action(view, formOf(request)), request, reply)
  if (typeof result === 'string') return reply.headers(DOCUMENT_HEADERS).redirect(ownPath(result), 303)
  // The result has no URL, so its links are those of the page with the form.
  const path = `/${view.path.split('/')[1]}`
  return sendDocument(request, reply, result.title, shell({ ...view, path }, result))
}

/** Refuses before anything of the page is read. Its operations check the same, and what a path without a need does. */
function requireAccess(needs: typeof PAGE_NEEDS, { url }: FastifyRequest, { access }: Session): void {
  const need = needOf(needs, url)
  if (need) requireRight(need, access)
}

async function orRefusal(result: Promise<Page | string>, request: FastifyRequest, reply: FastifyReply) {
  try {
    return await result
  } catch (error) {
    const page = refusalPage(error, request, reply)
    if (!page) throw error
    return page
  }
}

async function sessionOf({ provider, ...app }: Dashboard, request: FastifyRequest): Promise<Session | undefined> {
  const token = cookieOf(request, SESSION_COOKIE)
  if (token === undefined) return undefined
  const session = (await findSession(app.db, token)) ?? (provider && (await findPersonSession(app, provider, token)))
  if (session) request.tenant = `operator ${session.id}`
  return session
}

function viewOf(app: App, session: Session, request: FastifyRequest): Promise<View> {
  const [path = '/', search = ''] = request.url.split('?', 2)
  const source = callerOf(request.raw, app.config.trustedProxies)
  return openView({
    app,
    session,
    actor: { ...session.actor, source },
    host: request.headers.host ?? '',
    path,
    query: new URLSearchParams(search),
    params: (request.params ?? {}) as Record<string, string>,
  })
}

function sendCsv(view: View, name: string, reply: FastifyReply) {
  const found = view.tables.get(name)
  if (!found) throw new ApiError(404, 'object_not_found', `There is no table "${name}" on this page.`)
  return reply
    .headers({ ...DOCUMENT_HEADERS, 'content-disposition': `attachment; filename="${name}.csv"` })
    .type('text/csv; charset=utf-8')
    .send(writeCsv(found))
}
