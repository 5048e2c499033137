// What a scoped key may do: the scopes of the keys of projects and organizations, and their check.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../lib/errors.ts'
import type { KeyHolder } from './tenants.ts'

export const PROJECT_SCOPES = ['read', 'write', 'erase'] as const
export const ORGANIZATION_SCOPES = ['charge', 'refund', 'report'] as const
export type Scope = (typeof PROJECT_SCOPES)[number] | (typeof ORGANIZATION_SCOPES)[number]

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that a key needs for the route. */
    scope?: Scope
  }
}

/** Refuses a scoped key that lacks the scope of the route; a route without one needs a full key. */
export function requireScope({ is404, method, routeOptions }: FastifyRequest, holder: KeyHolder, forGet: Scope): void {
  if (holder.scopes === null || is404) return
  const scope = routeOptions.config.scope ?? (method === 'GET' || method === 'HEAD' ? forGet : undefined)
  if (scope !== undefined && holder.scopes.includes(scope)) return
  const key = `The key "${holder.name}" (${holder.scopes.join(', ')})`
  const lacks = scope === undefined ? 'may not do this: it needs a full key.' : `lacks the scope "${scope}".`
  throw new ApiError(403, 'scope_missing', `${key} ${lacks}`)
}
