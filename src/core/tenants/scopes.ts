// What a scoped key may do: the scopes of the keys of projects and organizations, and their check.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../lib/errors.ts'
import { type Access, hasRight, RIGHTS, type Right } from './access.ts'
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
  if (holder.scopes === null || is404 || routeOptions.config.refuses) return
  const scope = routeOptions.config.scope ?? (method === 'GET' || method === 'HEAD' ? forGet : undefined)
  if (scope !== undefined && holder.scopes.includes(scope)) return
  const key = `The key "${holder.name}" (${holder.scopes.join(', ')})`
  const lacks = scope === undefined ? 'may not do this: it needs a full key.' : `lacks the scope "${scope}".`
  throw new ApiError(403, 'scope_missing', `${key} ${lacks}`)
}

/** What operators need to make a key with the scope, so that no key does more than its maker may. */
const NEEDED: Record<Scope, Right> = {
  read: 'people',
  write: 'imports',
  erase: 'erase',
  charge: 'manage',
  refund: 'refund',
  report: 'reports',
}

/** Whether the operator may make a key with these scopes; null: a full key. */
export const mayMakeKey = (access: Pick<Access, 'role'>, scopes: readonly string[] | null): boolean =>
  missingRight(access, scopes) === undefined

/** Throws the 403 unless the operator may make a key with these scopes. */
export function requireMaker({ role }: Pick<Access, 'role'>, scopes: readonly string[] | null): void {
  const missing = missingRight({ role }, scopes)
  if (missing === undefined) return
  const what = missing.scope === undefined ? 'a full key' : `a key with the scope "${missing.scope}"`
  const makers = RIGHTS.keys.filter((one) => hasRight({ role: one }, missing.right))
  throw new ApiError(403, 'role_missing', `The role "${role}" may not make ${what}: it needs ${makers.join(' or ')}.`)
}

function missingRight(access: Pick<Access, 'role'>, scopes: readonly string[] | null) {
  const needed = scopes?.map((scope) => ({ scope, right: NEEDED[scope as Scope] })) ?? [
    { scope: undefined, right: 'manage' as const },
  ]
  return needed.find(({ right }) => !hasRight(access, right))
}
