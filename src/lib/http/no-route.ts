// The refusal of a request without a route: 405 with `Allow` where its path has other methods, and otherwise 404.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route is there only to refuse every request, with 404 or 405. */
    refuses?: boolean
  }
}

interface Route {
  pattern: string
  segments: string[]
  methods: Set<string>
}

/** The handler where a request has no route. The request was refused before its body was read, so the handler does nothing. */
export async function noRoute(): Promise<void> {}

/**
 * Refuses each request without a route, once its key was checked and before its body is read. Call this before the routes of `app`
 * are registered. A fixed path also has the methods of a route whose parameter matches it: with `POST /x/all` and `GET /x/:id`,
 * `GET /x/all` reads the object with the id `all`.
 *
 * Routes that refuse the other methods of each path would be nine in ten of all, and take a tenth of the time of a start.
 */
export function refuseWithoutRoute(app: FastifyInstance): void {
  const routes = new Map<string, Route>()
  app.addHook('onRoute', ({ url: pattern, method, config }) => {
    if (config?.refuses) return
    const route = routes.get(pattern) ?? { pattern, segments: pattern.split('/'), methods: new Set() }
    routes.set(pattern, route)
    for (const one of [method].flat()) route.methods.add(one)
  })
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    if (request.is404 || request.routeOptions.config.refuses) throw refusal(request, [...routes.values()])
    done()
  })
}

function refusal({ method, url, is404, routeOptions }: FastifyRequest, routes: Route[]): ApiError {
  // As the router decodes it.
  const segments = decodeURI(url.split(/[?#]/, 1)[0]!).split('/')
  // What a wildcard refuses has no methods of routes outside of it.
  const within = is404 ? '' : routeOptions.url!.replace(/\*$/, '')
  const found = routes.filter((route) => route.pattern.startsWith(within) && matches(route.segments, segments))
  if (found.length === 0) return new ApiError(404, 'path_not_found', 'This path does not exist.')
  const allow = [...new Set(found.flatMap(({ methods }) => [...methods]))].sort().join(', ')
  return new ApiError(405, 'method_not_allowed', `${method} is not allowed at this path: use ${allow}.`, {
    headers: { allow },
  })
}

function matches(pattern: string[], segments: string[]): boolean {
  if (pattern.at(-1) === '*')
    return segments.length >= pattern.length && matches(pattern.slice(0, -1), segments.slice(0, pattern.length - 1))
  return pattern.length === segments.length && pattern.every((one, at) => one[0] === ':' || one === segments[at])
}
