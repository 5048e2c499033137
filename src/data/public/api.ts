// The public data API: authenticates the project's key and mounts the resources.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { SyncedPage } from '../../core/lists/sync-readers.ts'
import { requireScope } from '../../core/tenants/scopes.ts'
import { ApiError } from '../../lib/errors.ts'
import { rawHeaders } from '../../lib/http/listener.ts'
import { noRoute } from '../../lib/http/no-route.ts'
import { checkAfterSlowBody } from '../../lib/http/slow-bodies.ts'
import type { PublicContext } from './context.ts'
import { experiments } from './experiments.ts'
import { exports } from './export.ts'
import { funnels } from './funnels.ts'
import { products } from './products.ts'
import { profiles } from './profiles.ts'
import { records } from './records.ts'
import { replies } from './replies.ts'
import { sessions } from './sessions.ts'
import { subscriptions } from './subscriptions.ts'
import { transactions } from './transactions.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The project of the request's key. */
    projectId: string
    /** The id of the request's key. */
    keyId: string
    /** Whether the project lets its keys write payments. */
    writesPayments: boolean
    /**
     * Throws a 401 if the key ended while the body arrived, and reads again what the project lets it write. Call it when all of the
     * body is read.
     */
    confirmKey(): Promise<void>
    /** The served page of a sync, if the request was one. */
    synced: SyncedPage | undefined
  }
}

const HEADER = 'Service-Secret'

/** Mounts the data API on `app`, which has its prefix. */
export async function publicApi(app: FastifyInstance, context: PublicContext): Promise<void> {
  app.decorateRequest('projectId', '')
  app.decorateRequest('keyId', '')
  app.decorateRequest('organizationId', '')
  app.decorateRequest('writesPayments', false)
  app.decorateRequest('synced', undefined)
  const { keys, keyUses, limits, secretHeaderCase, syncReaders } = context
  const holderOf = async (request: FastifyRequest) => {
    const key = keyOf(request, secretHeaderCase)
    return key ? await keys.lookUp(key) : undefined
  }
  app.decorateRequest('confirmKey', async function (this: FastifyRequest) {
    const holder = await holderOf(this)
    if (holder?.key_id !== this.keyId) throw unauthorized(secretHeaderCase, this)
    this.writesPayments = holder.writesPayments
  })
  app.addHook('onRequest', async (request, reply) => {
    const holder = await holderOf(request)
    if (!holder?.project_id) {
      await limits.delayUnauthorized(request)
      throw unauthorized(secretHeaderCase, request)
    }
    request.projectId = holder.project_id
    request.organizationId = holder.organization_id
    request.keyId = holder.key_id
    request.tenant = holder.project_id
    request.writesPayments = holder.writesPayments
    limits.admit(reply, holder)
    keyUses.note(holder)
    requireScope(request, holder, 'read')
  })
  checkAfterSlowBody(app, (request) => request.confirmKey())
  app.addHook('onResponse', ({ projectId, keyId, synced }, _reply, done) => {
    if (synced) syncReaders.note(projectId, keyId, synced)
    done()
  })
  app.setNotFoundHandler(noRoute)
  // Without this route, an unknown path below /public would reach the billing API, as that of an organization named "public".
  app.all('/*', { schema: { hide: true } as object, config: { refuses: true } }, noRoute)
  for (const mount of [
    funnels,
    experiments,
    profiles,
    sessions,
    replies,
    subscriptions,
    products,
    transactions,
    exports,
    records,
  ])
    mount(app, context)
}

/** The value of the header with exactly this name; undefined if the header is sent more than once. */
function keyOf(request: FastifyRequest, nameCase: 'exact' | 'any'): string | undefined {
  const [first, ...more] = rawHeaders(request.raw, 'service-secret')
  if (!first || more.length > 0 || (nameCase === 'exact' && first.name !== HEADER)) return undefined
  return first.value
}

function unauthorized(nameCase: 'exact' | 'any', { headers }: FastifyRequest): ApiError {
  const header =
    nameCase === 'exact'
      ? `in a header named exactly ${HEADER} (the name is case-sensitive)`
      : `in the header ${HEADER}`
  const isOther = 'service-secret-key' in headers && !('service-secret' in headers)
  const hint = isOther ? ' The header service-secret-key is for the billing API, with the key of an organization.' : ''
  return new ApiError(401, 'unauthorized', `Unauthorized: send the project's secret key once, ${header}.${hint}`)
}
