// The 405 of the methods that a path does not have.
import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import { ApiError } from '../errors.ts'
import { noRoute } from './listener.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route refuses every request: with 404 or 405. */
    refuses?: boolean
  }
}

// A route for each path and each of Node's 35 methods would take most of the time of a start.
const USUAL = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])

/**
 * Responds to every other method of the paths registered on `app` with 405 and `Allow`. Call it before registering routes. With
 * `isWhole`, everything below the prefix of `app` is registered on it: its unusual methods then share a route. A fixed path also takes the methods of a route whose parameter matches it: with `POST /x/all` and `GET /x/:id`,
 * `GET /x/all` reads the object with the id `all`.
 */
export function refuseOtherMethods(app: FastifyInstance, { isWhole = false } = {}): void {
  const methods = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set()
    methods.set(url, known)
    for (const one of [method].flat()) known.add(one)
  })
  // A plugin runs after the function that registers it, so it sees every route of its parent.
  app.register(async (others) => {
    // The routes registered here are added to `methods`, too.
    const routes = [...methods].map(([url, known]) => [url, [...known]] as const)
    const methodsOf = (url: string) => new Set(routes.flatMap(([pattern, its]) => (matches(pattern, url) ? its : [])))
    // A route's own hook runs after authentication, and before the body is read.
    const refuseAll = (url: string, method: string[], onRequest: (request: FastifyRequest) => Promise<void>) =>
      others.route({
        method: method as HTTPMethods[],
        url: relative(others.prefix, url),
        schema: { hide: true } as never,
        config: { refuses: true },
        onRequest,
        handler: noRoute,
      })
    const refused = isWhole ? app.supportedMethods.filter((one) => USUAL.has(one)) : app.supportedMethods
    for (const [url] of routes) {
      const known = methodsOf(url)
      refuseAll(
        url,
        refused.filter((one) => !known.has(one)),
        (request) => refuse(request, known),
      )
    }
    if (!isWhole) return
    const unusual = app.supportedMethods.filter((one) => !USUAL.has(one))
    refuseAll('/*', unusual, async (request) => {
      const known = methodsOf(request.url.split('?')[0]!)
      await (known.size > 0 ? refuse(request, known) : noRoute())
    })
  })
}

function matches(pattern: string, url: string): boolean {
  const expected = pattern.split('/')
  const segments = url.split('/')
  return expected.length === segments.length && expected.every((one, at) => one[0] === ':' || one === segments[at])
}

const relative = (prefix: string, url: string) => (url.startsWith(prefix) ? url.slice(prefix.length) : url)

async function refuse({ method }: FastifyRequest, known: ReadonlySet<string>): Promise<never> {
  const allow = [...known].sort().join(', ')
  throw new ApiError(405, 'method_not_allowed', `${method} is not allowed at this path: use ${allow}.`, {
    headers: { allow },
  })
}
