// Mounts the billing API: checks the organization's key, then routes charges, refunds, assets and the report.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Limits } from '../../core/limits/limits.ts'
import type { KeyCache } from '../../core/tenants/key-cache.ts'
import type { KeyUses } from '../../core/tenants/key-uses.ts'
import { requireScope } from '../../core/tenants/scopes.ts'
import type { KeyHolder } from '../../core/tenants/tenants.ts'
import { ApiError } from '../../lib/errors.ts'
import { rawHeaders } from '../../lib/http/listener.ts'
import { noRoute } from '../../lib/http/no-route.ts'
import { checkAfterSlowBody } from '../../lib/http/slow-bodies.ts'
import { credits } from './credits/api.ts'
import { KINDS } from './kinds.ts'
import { billingLists } from './lists.ts'
import { myAssets } from './my-assets.ts'
import type { MountContext } from './route.ts'
import { topUps } from './top-up/api.ts'
import { transactionReport } from './transaction-report.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The organization whose key the request brought. */
    organizationId: string
  }
}

/** Mounts the billing API on `app`, whose prefix names the organization as `:org_id`. */
export async function billingApi(
  app: FastifyInstance,
  context: MountContext & { keys: KeyCache; keyUses: KeyUses; limits: Limits },
): Promise<void> {
  app.decorateRequest('organizationId', '')
  app.addHook('onRequest', async (request, reply) => {
    const holder = await holderOf(request, context.keys)
    if (!holder) {
      await context.limits.delayUnauthorized(request)
      throw unauthorized(request)
    }
    request.organizationId = holder.organization_id
    request.tenant = holder.organization_id
    context.limits.admit(reply, holder)
    context.keyUses.note(holder)
    requireScope(request, holder, 'report')
  })
  checkAfterSlowBody(app, async (request) => {
    if (!(await holderOf(request, context.keys))) throw unauthorized(request)
  })
  app.setNotFoundHandler(noRoute)
  for (const kind of KINDS) kind.mount(app, context)
  myAssets(app, context)
  transactionReport(app, context)
  billingLists(app, context)
  credits(app, context)
  topUps(app, context)
}

/** The holder of the key, if it is a key of the organization in the path. Everything else is the same 401. */
async function holderOf(request: FastifyRequest, keys: KeyCache): Promise<KeyHolder | undefined> {
  const [header, ...more] = rawHeaders(request.raw, 'service-secret-key')
  const holder = header && more.length === 0 ? await keys.lookUp(header.value) : undefined
  const { org_id } = request.params as { org_id?: string }
  return holder?.project_id === null && holder.organization_id === org_id ? holder : undefined
}

function unauthorized({ headers }: FastifyRequest): ApiError {
  const isOther = 'service-secret' in headers && !('service-secret-key' in headers)
  const hint = isOther ? ' The header Service-Secret is for the data API, with the key of a project.' : ''
  return new ApiError(
    401,
    'unauthorized',
    `Unauthorized: send the secret key of the organization in the path once, in the header service-secret-key.${hint}`,
  )
}
