// The route of a refund.
import type { FastifyInstance } from 'fastify'
import type { Head } from '../../../core/audit/heads.ts'
import { inAuditTurn } from '../../../core/audit/turns.ts'
import { callerOf } from '../../../lib/http/client-address.ts'
import type { JsonObject } from '../../../lib/json/read.ts'
import { describe, lineOf, type MountContext, ok } from '../route.ts'
import { refund } from './refund.ts'
import { readRefundRequest, refundIn } from './request.ts'
import { refundOut } from './response.ts'

export function mountRefunds(app: FastifyInstance, context: MountContext): void {
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
      const result = await refund(
        { ...context, traceparent },
        organizationId,
        readRefundRequest(exactBody as JsonObject),
        {
          inTurn: (claim) => inAuditTurn(context.db, 'refund', lineOf(organizationId), claim),
          async onClaim(transaction, { refund_id, order_id, amount, currency_code, soft_refund }) {
            const after = { refund_id, amount, currency_code, soft_refund }
            const entry = { action: 'refund.begun', target: `order ${order_id}`, after }
            head = await context.audit.append(transaction, actor, entry)
          },
        },
      )
      if (head) await context.audit.confirm(head)
      return result
    },
  )
}
