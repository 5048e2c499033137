// The dashboard: web pages on the operator's listener, each made from operations of the operator's API.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { DAY_S } from '../../lib/days.ts'
import { ApiError } from '../../lib/errors.ts'
import { callerOf } from '../../lib/http/client-address.ts'
import { requireRight } from '../admin/reach.ts'
import { serveDashboardAssets } from './assets.ts'
import { chooseShard } from './choose-shard.ts'
import { cookieOf, isSecure, setCookie } from './cookies.ts'
import { csvName } from './csv-name.ts'
import {
  alone,
  isForBrowser,
  isRefusal,
  notFoundPage,
  pageBefore,
  refusalPage,
  refusePathPrefix,
  showError,
} from './errors.ts'
import { filterBar } from './filter.ts'
import { acceptForms, formOf } from './forms.ts'
import { type IdentityProvider, openIdentityProvider } from './identity-provider.ts'
import { FORM_NEEDS, needOf, PAGE_NEEDS } from './needs.ts'
import { namesOf } from './numbers.ts'
import { mountOidc } from './oidc-sign-in.ts'
import { severalCurrencies } from './pages/by-project.ts'
import { findPersonSession } from './person-sessions.ts'
import { type RefusedForm, refusedFilters } from './refused-form.ts'
import { actions, type Form, pages, type Route, routeOf } from './routes.ts'
import { DOCUMENT_HEADERS, ownPath, sendDocument, THEME_COOKIE } from './send.ts'
import { findSession, type Session } from './sessions.ts'
import { csvOf } from './sheet.ts'
import { type Page, shell } from './shell.ts'
import { mountSignIn, redirectToSignIn, SESSION_COOKIE } from './sign-in.ts'
import { withIsoDays } from './typed-days.ts'
import { openView, type View } from './view.ts'

const THEME_SECONDS = 365 * DAY_S
// The project that was chosen last, which is opened after a sign-in.
const PROJECT_COOKIE = 'tundish_project'
const PROJECT_SECONDS = 90 * DAY_S

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
  const { view, shown } = await orRefusal(app, session, request, reply, async () => {
    requireAccess(PAGE_NEEDS, request, session)
    const view = await viewOf(app, session, request)
    return { view, shown: await withFilterBar(view, await bySeveral(view, page)) }
  })
  if (typeof shown === 'string') return reply.headers(DOCUMENT_HEADERS).redirect(ownPath(shown), 303)
  keepProject(view, request, reply)
  const csv = view.query.get('csv')
  if (csv !== null && reply.statusCode === 200) return sendCsv(view, shown, csv, reply)
  return sendDocument(request, reply, shown.title, shell(view, shown))
}

async function submitForm(app: Dashboard, action: Form, request: FastifyRequest, reply: FastifyReply) {
  const session = await sessionOf(app, request)
  if (!session) throw new ApiError(401, 'unauthorized', 'Your session has ended, and nothing was done. Sign in again.')
  const { view, shown: result } = await orRefusal(app, session, request, reply, async () => {
    requireAccess(FORM_NEEDS, request, session)
    const view = await viewOf(app, session, request)
    return { view, shown: await action(view, formOf(request)) }
  })
  if (typeof result === 'string') return reply.headers(DOCUMENT_HEADERS).redirect(ownPath(result), 303)
  // The result has no URL, so its links are those of the page with the form.
  const path = `/${view.path.split('/')[1]}`
  return sendDocument(request, reply, result.title, shell({ ...view, path }, result))
}

/** The page, or that of each project if the projects of the organization have amounts that are not added. */
async function bySeveral(view: View, page: Route): Promise<Page | string> {
  try {
    return await page(view)
  } catch (error) {
    const isSeveral = error instanceof ApiError && error.code === 'different_currencies' && !view.project
    if (!isSeveral) throw error
    return severalCurrencies(view, `All projects of ${view.organization?.name || view.organization?.id}`)
  }
}

/** Refuses before anything of the page is read. Its operations check the same, and what a path without a need does. */
function requireAccess(needs: typeof PAGE_NEEDS, { url }: FastifyRequest, { access }: Session): void {
  const need = needOf(needs, url)
  if (need) requireRight(need, access)
}

/** The page with the name of its filter, which only pages with a filter have to read. */
async function withFilterBar(view: View, shown: Page | string): Promise<Page | string> {
  const isShown = view.filters.length > 0 || view.filtered.byForm
  if (typeof shown === 'string' || !isShown || !view.organization) return shown
  return { ...shown, filterBar: filterBar(view, await namesOf(view)) }
}

interface Shown {
  view: View
  shown: Page | string
}

/** What the page or form shows, or the page that says why it is refused, with the navigation. */
async function orRefusal(
  app: App,
  session: Session,
  request: FastifyRequest,
  reply: FastifyReply,
  run: () => Promise<Shown>,
): Promise<Shown> {
  try {
    return await run()
  } catch (error) {
    if (!isRefusal(error)) throw error
    const form = await refusedForm(app, session, request, error.message)
    return { view: await viewForError(app, session, request), shown: refusalPage(error, request, reply, form) }
  }
}

/** The refused form with what was typed, from its page, which is made again for it; undefined if it is not there. */
async function refusedForm(app: App, session: Session, request: FastifyRequest, why: string) {
  const refused: RefusedForm | undefined =
    request.method === 'POST'
      ? { path: request.url.split('?')[0]!, page: pageBefore(request), typed: formOf(request) }
      : refusedFilters(request.url, why)
  if (!refused) return undefined
  const [path = '/', search = ''] = refused.page.split('?', 2)
  try {
    const route = routeOf(path)
    if (!route) return undefined
    const view = await viewOf(app, session, request, { path, search, params: route.params, refused })
    const page = await route.show(view)
    // The form of the period.
    if (!refused.found && typeof page !== 'string') shell(view, page)
  } catch (error) {
    // The page of what was refused may be gone, or show nothing of several projects: the refusal is what matters.
    app.log.debug({ request_id: request.id, err: error }, 'The page of a refused form failed.')
  }
  return refused.found
}

/** The view of an error page: that of the request, or without its choices if they are what was refused. */
const viewForError = (app: App, session: Session, request: FastifyRequest): Promise<View> =>
  viewOf(app, session, request).catch(() => viewOf(app, session, request, { search: '' }))

/** The page for a path that does not exist, with the navigation for those who are signed in. */
export const pageNotFound =
  (app: App) =>
  (request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined => {
    if (!isForBrowser(request)) return undefined
    void showNotFound(app, request, reply)
    return reply
  }

async function showNotFound(app: App, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const page = notFoundPage(request, reply)
  try {
    const session = await sessionOf({ ...app, provider: undefined }, request)
    const view = session && (await viewForError(app, session, request))
    sendDocument(request, reply, page.title, view ? shell(view, page) : alone(page))
  } catch {
    sendDocument(request, reply, page.title, alone(page))
  }
}

async function sessionOf({ provider, ...app }: Dashboard, request: FastifyRequest): Promise<Session | undefined> {
  const token = cookieOf(request, SESSION_COOKIE)
  if (token === undefined) return undefined
  const session = (await findSession(app.db, token)) ?? (provider && (await findPersonSession(app, provider, token)))
  if (session) request.tenant = `operator ${session.id}`
  return session
}

/** The view of the request, or of another page of the same operator. */
function viewOf(app: App, session: Session, request: FastifyRequest, other: Partial<OtherPage> = {}): Promise<View> {
  const [own = '/', given = ''] = request.url.split('?', 2)
  const { path = own, search = given, params = request.params ?? {}, refused } = other
  const source = callerOf(request.raw, app.config.trustedProxies)
  return openView({
    app,
    session,
    actor: { ...session.actor, source },
    host: request.headers.host ?? '',
    path,
    query: withIsoDays(new URLSearchParams(search)),
    params: params as Record<string, string>,
    lastProject: cookieOf(request, PROJECT_COOKIE),
    refused,
  })
}

interface OtherPage {
  path: string
  /** Its query, without the question mark. */
  search: string
  params: Record<string, string>
  refused: RefusedForm
}

function keepProject({ project, query }: View, request: FastifyRequest, reply: FastifyReply): void {
  const isChosen = project !== undefined && project.id === query.get('project') && reply.statusCode === 200
  if (isChosen && project.id !== cookieOf(request, PROJECT_COOKIE))
    setCookie(reply, PROJECT_COOKIE, project.id, { seconds: PROJECT_SECONDS, secure: isSecure(request) })
}

function sendCsv(view: View, page: Page, name: string, reply: FastifyReply) {
  const found = view.tables.get(name)
  if (!found) throw new ApiError(404, 'object_not_found', `There is no table "${name}" on this page.`)
  return reply
    .headers({
      ...DOCUMENT_HEADERS,
      'content-disposition': `attachment; filename="${csvName(view, page, name, found)}.csv"`,
    })
    .type('text/csv; charset=utf-8')
    .send(Readable.from(csvOf(found)))
}
