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

/**
 * Responds to every other method of the paths registered on `app` with 405 and `Allow`. Call it before registering routes. A fixed
 * path also takes the methods of a route whose parameter matches it: with `POST /x/all` and `GET /x/:id`, `GET /x/all` reads the
 * object with the id `all`.
 *
 * Routes for all of Node's 35 methods at each path would take most of the time of a start where paths are many. With `isWhole`,
 * everything below the prefix of `app` is registered on it, and all methods but GET and HEAD share a route.
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
    const routes = [...methods].map(([url, known]) => ({ url, segments: url.split('/'), known: [...known] }))
    const methodsOf = (path: string) => {
      const segments = path.split('/')
      return new Set(routes.flatMap((route) => (matches(route.segments, segments) ? route.known : [])))
    }
    const shared = app.supportedMethods.filter((method) => isWhole && method !== 'GET' && method !== 'HEAD')
    const alone = app.supportedMethods.filter((method) => !shared.includes(method))
    // A route's own hook runs after authentication, and before the body is read.
    const add = (url: string, method: string[], onRequest: (request: FastifyRequest) => Promise<never>) =>
      others.route({
        method: method as HTTPMethods[],
        url: relative(others.prefix, url),
        schema: { hide: true } as never,
        config: { refuses: true },
        onRequest,
        handler: noRoute,
      })
    for (const { url } of routes) {
      const known = methodsOf(url)
      const missing = alone.filter((method) => !known.has(method))
      if (missing.length > 0) add(url, missing, (request) => refuse(request, known))
    }
    if (!isWhole) return
    add('/*', shared, (request) => {
      const known = methodsOf(request.url.split('?')[0]!)
      return known.size > 0 ? refuse(request, known) : noRoute()
    })
  })
}

function matches(pattern: string[], segments: string[]): boolean {
  return pattern.length === segments.length && pattern.every((one, at) => one[0] === ':' || one === segments[at])
}

const relative = (prefix: string, url: string) => (url.startsWith(prefix) ? url.slice(prefix.length) : url)

async function refuse({ method }: FastifyRequest, known: ReadonlySet<string>): Promise<never> {
  const allow = [...known].sort().join(', ')
  throw new ApiError(405, 'method_not_allowed', `${method} is not allowed at this path: use ${allow}.`, {
    headers: { allow },
  })
}
