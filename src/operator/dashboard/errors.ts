// Error pages: a refusal with its message, a database outage with a link to try again, a bug without its details.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { ApiError, tryLater } from '../../lib/errors.ts'
import { hasGone, whyLater } from '../../lib/http/error-responses.ts'
import { shorten } from '../../lib/text.ts'
import { formOf } from './forms.ts'
import { type Html, html } from './html.ts'
import { inLabels } from './refused-form.ts'
import { ownPath, sendDocument } from './send.ts'
import type { Page } from './shell.ts'
import { signInPath } from './sign-in.ts'

/** The page for a refused request, which keeps the navigation and the search. */
export function refusalPage(error: ApiError, request: FastifyRequest, reply: FastifyReply, form?: Html): Page {
  const { status, headers, message } = error
  reply.code(status).headers(headers ?? {})
  return { title: titleOf(status), body: failure(inLabels(form, message), html`${form}${nextSteps(status, request)}`) }
}

/** Whether it is a refusal, and no failure of ours. */
export const isRefusal = (error: unknown): error is ApiError => error instanceof ApiError && error.status < 500

/** Sends the error as a page with its status. */
export function showError({ log }: App, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = asRefusal(error)
  const status = known?.status ?? (error as { statusCode?: number }).statusCode ?? 500
  const { id: request_id, tenant } = request
  if ((!known || status >= 500) && !hasGone(error, request))
    log.error({ request_id, tenant, route: request.routeOptions?.url, err: error }, 'A page failed.')
  const sentence =
    known?.message ??
    (status === 413
      ? 'The form is too large.'
      : `Internal error. The log has the details under request ID ${request_id}.`)
  reply.code(status).headers(known?.headers ?? {})
  const title = titleOf(status)
  // Without a confirmed session nothing was begun.
  const isUntouched = known?.code === 'identity_provider_unreachable'
  const next =
    isUntouched && request.method !== 'GET' ? html`<p>Nothing was done.</p>${KEPT}${backToForm(request)}` : undefined
  return sendDocument(request, reply, title, errorBody(title, sentence, next ?? nextSteps(status, request)))
}

/** Whether a browser asks for a page; programs get the error body of the API. */
export const isForBrowser = ({ method, url, headers }: FastifyRequest): boolean =>
  method === 'GET' && !url.startsWith('/admin/') && (headers.accept?.includes('text/html') ?? false)

/** The page for a path that does not exist. */
export function notFoundPage(request: FastifyRequest, reply: FastifyReply): Page {
  reply.code(404)
  return { title: 'Not found', body: failure(`This page does not exist. ${NO_PREFIX}`, nextSteps(404, request)) }
}

const NO_PREFIX = 'Behind a proxy the dashboard needs a host name without a path before its own.'

/** Responds to requests of a proxy that removed a path: the links and redirects of pages would lead out of it. */
export async function refusePathPrefix(
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const prefix = [request.headers['x-forwarded-prefix'] ?? ''].flat().join()
  if (/^\/*$/.test(prefix)) return undefined
  const sentence = `The dashboard cannot be served below the path ${shorten(prefix, 100)}. ${NO_PREFIX}`
  return sendDocument(request, reply.code(404), 'Not found', errorBody('Not found', sentence, html``))
}

function asRefusal(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  const later = whyLater(error)
  return later && tryLater(...later)
}

function titleOf(status: number): string {
  if (status === 401) return 'Signed out'
  if (status === 404) return 'Not found'
  if (status === 503) return 'Temporarily unavailable'
  return status >= 500 ? 'Something went wrong' : 'That did not work'
}

const failure = (sentence: string, next: Html) => html`<p class="failed" role="alert">${sentence}</p>${next}`

const errorBody = (title: string, sentence: string, next: Html) => alone({ title, body: failure(sentence, next) })

/** A page without the navigation. */
export const alone = ({ title, body }: Page): Html =>
  html`<body class="alone"><main id="content"><h1>${title}</h1>${body}</main></body>`

// The script shows it if it has kept the form.
const KEPT = html`<p class="quiet" data-kept hidden>This tab keeps what you typed, except secrets: you find it in the form again.</p>`

/** Links for what to do next. A form that failed may have had an effect, so it leads back to its page, which shows that. */
function nextSteps(status: number, request: FastifyRequest): Html {
  const { method, url } = request
  const before = pageBefore(request)
  if (status === 401)
    return html`${request.method !== 'GET' && KEPT}<p><a class="button" href="${signInPath(before)}">Sign in</a></p>`
  if (method !== 'GET') {
    const back = backToForm(request)
    return status < 500
      ? back
      : html`<p>The change may have been made. Check before you send the form again.</p>${back}`
  }
  const today = html`<a href="/">Today</a>`
  if (status < 500)
    return html`<p class="row">${before !== '/' && html`<a class="button" href="${before}">Back</a>`} ${today}</p>`
  return html`<p class="row"><a class="button" href="${ownPath(url)}">Try again</a> ${today}</p>`
}

const backToForm = (request: FastifyRequest): Html =>
  html`<p class="row"><a class="button" href="${pageBefore(request)}">Back to the form</a> <a href="/">Today</a></p>`

/**
 * The page with the form or link, from `Referer`, which browsers send to the same origin. A form on an error page has it as a field:
 * the address of an error page is no page.
 */
export function pageBefore(request: FastifyRequest): string {
  const back = formOf(request).get('back')
  if (back !== null) return ownPath(back)
  const { referer, host } = request.headers
  const page = referer !== undefined && URL.canParse(referer) ? new URL(referer) : undefined
  return page?.host === host ? ownPath(page!.pathname + page!.search) : '/'
}
