// Authentication of the operator's API: the key of a request, its rights, and its name in the audit log.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { type Operator, recognizeOperator } from '../../core/tenants/operator-keys.ts'
import { ApiError } from '../../lib/errors.ts'
import { callerOf } from '../../lib/http/client-address.ts'
import { rawHeaders } from '../../lib/http/listener.ts'
import { checkAfterSlowBody } from '../../lib/http/slow-bodies.ts'
import { requireRight } from './reach.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The operator key of the request. */
    operator: Operator | undefined
  }
}

/** Refuses every request on `scope` without a valid operator key with 401. */
export function requireOperator(scope: FastifyInstance, app: App): void {
  scope.decorateRequest('operator', undefined)
  scope.addHook('onRequest', async (request) => {
    const key = bearer(request)
    request.operator = key === undefined ? undefined : await recognizeOperator(app.db, key)
    if (!request.operator) throw unauthorized()
    request.tenant = `operator ${request.operator.id}`
  })
  checkAfterSlowBody(scope, (request) => confirmOperator(request, app))
}

/** Throws a 401 if the key ended while the body arrived. Call it when all of the body is read. */
export async function confirmOperator(request: FastifyRequest, { db }: Pick<App, 'db'>): Promise<void> {
  const operator = await recognizeOperator(db, bearer(request)!)
  if (operator?.id !== request.operator!.id) throw unauthorized()
}

/** A hook that refuses operators whose role or reach does not allow the operation with 403, before a body is read. */
export const requireOpen = (operation: Parameters<typeof requireRight>[0]) => async (request: FastifyRequest) =>
  requireRight(operation, request.operator!)

export function actorOf(request: FastifyRequest, { config }: App): Actor {
  return { kind: 'operator key', id: request.operator!.id, source: callerOf(request.raw, config.trustedProxies) }
}

function bearer(request: FastifyRequest): string | undefined {
  const [header, ...more] = rawHeaders(request.raw, 'authorization')
  return header && more.length === 0 ? /^Bearer ([\x21-\x7e]+)$/i.exec(header.value)?.[1] : undefined
}

function unauthorized(): ApiError {
  const headers = { 'www-authenticate': 'Bearer' }
  return new ApiError(
    401,
    'unauthorized',
    'Unauthorized: send an operator key as "Authorization: Bearer operator_…".',
    { headers },
  )
}
