// Authentication of the operator's API: the key of a request, its scope, and its name in the audit log.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { type Operator, recognizeOperator } from '../../core/tenants/operator-keys.ts'
import { ApiError } from '../../lib/errors.ts'
import { callerOf } from '../../lib/http/client-address.ts'
import { rawHeaders } from '../../lib/http/listener.ts'

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
}

/** A hook that refuses keys with the scope `read` with 403. */
export async function requireWrite(request: FastifyRequest): Promise<void> {
  if (request.operator?.scope !== 'write')
    throw new ApiError(403, 'key_is_read_only', 'This operator key may only read.')
}

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
