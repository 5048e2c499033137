// Errors as pages: a refusal in its sentence, a database that is away with a way to try again, a bug without its details.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { ApiError, tryLater } from '../lib/errors.ts'
import { whyLater } from '../lib/http/error-answers.ts'
import { type Html, html } from './html.ts'
import { ownPath, sendDocument } from './send.ts'
import { signInPath } from './sign-in.ts'

/** Sends the error as a page with its status. */
export function showError({ log }: App, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = asRefusal(error)
  const status = known?.status ?? (error as { statusCode?: number }).statusCode ?? 500
  const { id: request_id, tenant } = request
  if (!known || status >= 500)
    log.error({ request_id, tenant, route: request.routeOptions?.url, err: error }, 'A page failed.')
  const sentence =
    known?.message ??
    (status === 413 ? 'The form is too large.' : `Internal error. The log has it under the request id ${request_id}.`)
  reply.code(status).headers(known?.headers ?? {})
  const title = titleOf(status)
  return sendDocument(request, reply, title, errorBody(title, sentence, waysOn(status, request)))
}

function asRefusal(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  const later = whyLater(error)
  return later && tryLater(...later)
}

function titleOf(status: number): string {
  if (status === 401) return 'Signed out'
  if (status === 404) return 'Not found'
  if (status === 503) return 'Not available at the moment'
  return status >= 500 ? 'Something went wrong' : 'That did not work'
}

const errorBody = (title: string, sentence: string, ways: Html) =>
  html`<body class="alone"><main id="content"><h1>${title}</h1><p class="failed" role="alert">${sentence}</p>${ways}</main></body>`

/** What one can do next. A form that failed may have done its work before: only its page shows that. */
function waysOn(status: number, { method, url, headers }: FastifyRequest): Html {
  if (status === 401) return html`<p><a class="button" href="${signInPath(pageBefore(headers))}">Sign in</a></p>`
  const today = html`<a href="/">Today</a>`
  if (method !== 'GET') {
    const back = html`<p class="row"><a class="button" href="${pageBefore(headers)}">Back to the form</a> ${today}</p>`
    return status < 500 ? back : html`<p>It may have been done: look before you send the form again.</p>${back}`
  }
  const before = pageBefore(headers)
  if (status < 500)
    return html`<p class="row">${before !== '/' && html`<a class="button" href="${before}">Back</a>`} ${today}</p>`
  return html`<p class="row"><a class="button" href="${ownPath(url)}">Try again</a> ${today}</p>`
}

/** The page of the form or link: browsers send its address to the same origin. */
function pageBefore({ referer, host }: FastifyRequest['headers']): string {
  const page = referer !== undefined && URL.canParse(referer) ? new URL(referer) : undefined
  return page?.host === host ? ownPath(page!.pathname + page!.search) : '/'
}
