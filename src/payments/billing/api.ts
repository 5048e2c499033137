// Mounts the billing API: checks the organization's key, then routes charges, refunds, assets and the report.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Audit } from '../../core/audit/audit.ts'
import type { Head } from '../../core/audit/heads.ts'
import { inAuditTurn } from '../../core/audit/turns.ts'
import type { Limits } from '../../core/limits/limits.ts'
import type { KeyCache } from '../../core/tenants/key-cache.ts'
import { requireScope } from '../../core/tenants/scopes.ts'
import type { KeyHolder } from '../../core/tenants/tenants.ts'
import { ApiError } from '../../lib/errors.ts'
import { callerOf, type TrustedProxies } from '../../lib/http/client-address.ts'
import { noRoute, rawHeaders, refuseOtherMethods } from '../../lib/http/listener.ts'
import type { JsonObject } from '../../lib/json/read.ts'
import { oneOffChargeOut } from './charge/answer.ts'
import { oneOffCharge } from './charge/charge.ts'
import { oneOffChargeIn, readChargeRequest } from './charge/request.ts'
import type { BillingContext } from './context.ts'
import { credits } from './credits/api.ts'
import { billingLists } from './lists.ts'
import { myAssets } from './my-assets.ts'
import { refundOut } from './refund/answer.ts'
import { refund } from './refund/refund.ts'
import { readRefundRequest, refundIn } from './refund/request.ts'
import { describe, lineOf, ok } from './route.ts'
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
  context: BillingContext & { keys: KeyCache; limits: Limits; audit: Audit; trustedProxies: TrustedProxies },
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
    requireScope(request, holder, 'report')
  })
  app.setNotFoundHandler(noRoute)
  refuseOtherMethods(app)
  charges(app, context)
  refunds(app, context)
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

function charges(app: FastifyInstance, context: BillingContext): void {
  const schema = {
    ...describe({
      operationId: 'createOneOffCharge',
      summary: 'Charge a saved card',
      description:
        'Charges any amount to the customer’s saved card, at most once for each `idempotency_key`, and grants one consumable. Send the same key with every retry: it returns the outcome of the first charge.',
    }),
    body: oneOffChargeIn,
    ...ok('The outcome of the charge.', oneOffChargeOut, {
      coded: ['one_off_charge_disabled', 'idempotency_key_reused'],
    }),
  }
  app.post(
    '/payment/one_off_charge',
    { schema, config: { scope: 'charge' } },
    async ({ exactBody, organizationId, trace: { traceparent } }) =>
      oneOffCharge({ ...context, traceparent }, organizationId, readChargeRequest(exactBody as JsonObject)),
  )
}

function refunds(
  app: FastifyInstance,
  context: BillingContext & { audit: Audit; trustedProxies: TrustedProxies },
): void {
  const schema = {
    ...describe({
      operationId: 'createRefund',
      summary: 'Refund a charge',
      description:
        'Refunds a charge or a part of it. When refunds that are not soft add up to the whole amount, the consumable is revoked.',
    }),
    body: refundIn,
    ...ok('The outcome of the refund.', refundOut, { coded: ['idempotency_key_reused'] }),
  }
  app.post(
    '/payment/refund',
    { schema, config: { scope: 'refund' } },
    async ({ exactBody, organizationId, raw, trace: { traceparent } }) => {
      const source = callerOf(raw, context.trustedProxies)
      const actor = { kind: 'organization key', id: organizationId, source } as const
      let head: Head | undefined
      const answer = await refund(
        { ...context, traceparent },
        organizationId,
        readRefundRequest(exactBody as JsonObject),
        {
          inTurn: (claim) => inAuditTurn(context.db, 'refund', lineOf(organizationId), claim),
          async onClaim(transaction, { refund_id, order_id, amount, currency_code, soft_refund }) {
            const after = { refund_id, amount, currency_code, soft_refund: soft_refund === 't' }
            const entry = { action: 'refund.begun', target: `order ${order_id}`, after }
            head = await context.audit.append(transaction, actor, entry)
          },
        },
      )
      if (head) await context.audit.confirm(head)
      return answer
    },
  )
}
