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
 * Responds to every other method of the paths registered on `app` with 405 and `Allow`. Call it before registering routes.
 * A fixed path also takes the methods of a route whose parameter matches it: with `POST /x/all` and `GET /x/:id`,
 * `GET /x/all` reads the object with the id `all`.
 */
export function refuseOtherMethods(app: FastifyInstance): void {
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
    for (const [url] of routes) {
      const known = new Set(routes.flatMap(([pattern, its]) => (matches(pattern, url) ? its : [])))
      const allow = [...known].sort().join(', ')
      const method = app.supportedMethods.filter((one) => !known.has(one)) as HTTPMethods[]
      others.route({
        method,
        url: relative(others.prefix, url),
        schema: { hide: true } as never,
        config: { refuses: true },
        // A route's own hook runs after authentication, and before the body is read.
        onRequest: refuse(allow),
        handler: noRoute,
      })
    }
  })
}

function matches(pattern: string, url: string): boolean {
  const expected = pattern.split('/')
  const segments = url.split('/')
  return expected.length === segments.length && expected.every((one, at) => one[0] === ':' || one === segments[at])
}

const relative = (prefix: string, url: string) => (url.startsWith(prefix) ? url.slice(prefix.length) : url)

const refuse = (allow: string) => async (request: FastifyRequest) => {
  throw new ApiError(405, 'method_not_allowed', `${request.method} is not allowed at this path: use ${allow}.`, {
    headers: { allow },
  })
}
