// The route that receives notifications of payment providers. They are authenticated by their signature, not by a secret key.
import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import type { Limits } from '../../core/limits/limits.ts'
import { ApiError, invalidValue } from '../../lib/errors.ts'
import { rawHeaders } from '../../lib/http/listener.ts'
import { noRoute } from '../../lib/http/no-route.ts'
import { problems } from '../../lib/http/problems.ts'
import { Type } from '../../lib/shape/schema.ts'
import { type AccountName, findWebhookSecrets } from '../../payments/providers/account.ts'
import { adapters } from '../../payments/providers/adapters.ts'
import type { Notification } from '../../payments/providers/notification.ts'
import type { NotificationContext } from './handle.ts'
import type { Pending } from './pending.ts'

type Context = NotificationContext & { limits: Limits; pending: Pending }

/** Mounts the route on `app`, whose prefix names the organization as `:org_id`. */
export async function notificationsApi(app: FastifyInstance, context: Context): Promise<void> {
  const schema = {
    operationId: 'receiveProviderNotification',
    tags: ['Billing'],
    summary: 'Receive a notification of a payment provider',
    description:
      'For the payment provider, which signs its requests (Stripe: `Stripe-Signature`; Primer: `X-Signature-Primary`). A notification is only a hint: it is stored, and its object is looked up at the provider. The response is 200 once it is stored.',
    security: [],
    params: Type.Object({
      org_id: Type.String({ description: 'The id of the organization.', examples: ['demo'] }),
      psp: Type.String({ description: 'The payment provider.', examples: ['stripe'] }),
      psp_merchant_id: Type.String({ description: 'The merchant account at the provider.' }),
    }),
    querystring: Type.Object({}),
    response: {
      200: {
        description: 'The notification is stored, or was handled before.',
        content: {
          'application/json': { schema: Type.Object({ received: Type.Boolean() }, { title: 'NotificationReceived' }) },
        },
      },
      ...problems(400, 413, 415),
    },
  }
  const url = '/providers/:psp/:psp_merchant_id/events'
  // Otherwise they would be refused where the billing API refuses unknown paths, with a 401.
  const others = app.supportedMethods.filter((method) => method !== 'POST') as HTTPMethods[]
  app.route({ method: others, url, schema: { hide: true } as object, config: { refuses: true }, handler: noRoute })
  app.post(url, { schema }, async (request) => {
    const { org_id, psp, psp_merchant_id } = request.params as Record<string, string>
    const account = { organizationId: org_id!, psp: psp!, merchantId: psp_merchant_id! }
    const found = await verified(request, account, context)
    if ('refused' in found) {
      context.countNotification('other', 'nothing', 'refused')
      await context.limits.delayUnauthorized(request)
      throw new ApiError(400, 'invalid_signature', found.refused)
    }
    await context.pending.receive(account, found)
    return { received: true }
  })
}

// The tolerance of Stripe's own libraries; Primer names none. A body with an older signature may be a replay.
const TOLERANCE_S = 300

const REFUSED =
  'The notification is not signed by the payment provider of this merchant account, or the signature is too old.'

/**
 * Parses the notification and verifies its signature. The sentence of a refusal is the same for an account that is not connected
 * and a wrong signature, so that the response reveals nothing about accounts; the log has the reason. Throws a 400 for a signed
 * body that is not a notification.
 */
async function verified(
  request: FastifyRequest,
  account: AccountName,
  { db, seal, log, countNotification }: Context,
): Promise<Notification | { refused: string }> {
  const adapter = adapters[account.psp]
  if (!adapter || !request.rawBody) return { refused: REFUSED }
  const headers = adapter.signatureHeaders.map((name) => rawHeaders(request.raw, name))
  const values = headers.flatMap((found) => found.map(({ value }) => value))
  if (values.length === 0 || headers.some((found) => found.length > 1)) return { refused: REFUSED }
  const secrets = await findWebhookSecrets(db, seal, account)
  const refused = (why: string) => log.warn({ ...account, request_id: request.id, why }, 'A notification was refused.')
  const signed = adapter.verifySignature(values, request.rawBody, secrets)
  if (!signed) {
    if (secrets.length > 0)
      refused(`its signature is of none of the account's webhook secrets, or the body was changed on its way`)
    return { refused: REFUSED }
  }
  // The signature contains the provider's time, which is compared with this machine's clock, not the database's.
  const lateS = signed.atS === null ? 0 : Math.round(Date.now() / 1000 - signed.atS)
  if (Math.abs(lateS) > TOLERANCE_S) {
    const why = `it was signed ${Math.abs(lateS)} s ${lateS > 0 ? 'before' : 'after'} the time of this server's clock`
    refused(why)
    return { refused: `${REFUSED} Its signature is valid, but ${why}.` }
  }
  const notification = adapter.readNotification(request.body)
  if (notification) return notification
  countNotification(account.psp, 'nothing', 'refused')
  throw invalidValue(adapter.whyNotRead(request.body))
}
