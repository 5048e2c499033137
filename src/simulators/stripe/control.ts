// The dialect's control interface: actions that at Stripe happen by time, by a bank, or by a user of the dashboard.
import type { FastifyInstance } from 'fastify'
import { Type } from '../../lib/shape/schema.ts'
import type { Dialect } from './call.ts'
import { payCheckout } from './checkout.ts'
import { fillDemoAccount } from './demo-account.ts'
import type { StripeDialect } from './dialect.ts'
import { closeDispute, openDispute } from './disputes.ts'
import { missing } from './errors.ts'
import { rollSecret } from './events.ts'
import type { OrderedFault } from './faults.ts'
import { pay } from './payment-intents.ts'
import { type RenewedCard, renewCard } from './payment-methods.ts'
import { adjust, failPayout, payOut } from './payouts.ts'
import { failRefund, refund } from './refunds.ts'
import type { Kind, Objects } from './state.ts'
import { renew } from './subscriptions.ts'

const Id = Type.String({ minLength: 1, maxLength: 255 })
const Milliseconds = Type.Integer({ minimum: 0 })
const troubles = ['drop_before', 'drop_after', 'error_before', 'error_after', 'late', 'slow']
const refusals = ['busy', 'locked', 'in_use', 'forbidden']

const bodies = {
  clock: Type.Object({ advance_ms: Milliseconds }),
  fault: Type.Object({
    method: Type.Optional(Type.String()),
    path: Type.String(),
    kind: Type.Union([...troubles, ...refusals].map((kind) => Type.Literal(kind))),
    ms: Type.Optional(Milliseconds),
    times: Type.Optional(Type.Integer({ minimum: 1 })),
  }),
  events: Type.Object({
    copies: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    delayMs: Type.Optional(Milliseconds),
    shuffled: Type.Optional(Type.Boolean()),
    isOff: Type.Optional(Type.Boolean()),
  }),
  payment: Type.Object({
    customer: Id,
    payment_method: Id,
    amount: Type.Integer({ minimum: 1 }),
    ago_s: Type.Integer({ minimum: 0 }),
  }),
  refund: Type.Object({ charge: Id, amount: Type.Optional(Type.Integer({ minimum: 1 })) }),
  dispute: Type.Object({ charge: Id, reason: Type.Optional(Type.String()) }),
  verdict: Type.Object({ status: Type.Union([Type.Literal('won'), Type.Literal('lost')]) }),
  key: Type.Object({ key: Type.String() }),
  other: Type.Object({ key: Type.String(), account: Id }),
  card: Type.Object({ last4: Type.Optional(Type.String()), exp_month: Type.Integer(), exp_year: Type.Integer() }),
  objects: Type.Object({ objects: Type.Array(Type.Object({ id: Id, object: Id })) }),
  buyer: Type.Object({ email: Type.Optional(Type.String()), ago_s: Type.Optional(Milliseconds) }),
  adjustment: Type.Object({
    ago_s: Type.Optional(Milliseconds),
    amount: Type.Integer(),
    type: Type.Union([Type.Literal('stripe_fee'), Type.Literal('adjustment')]),
  }),
  pastPayout: Type.Object({ ago_s: Milliseconds }),
  roll: Type.Object({ keep_ms: Milliseconds }),
  account: Type.Object({
    customers: Type.Integer({ minimum: 1, maximum: 100_000 }),
    seed: Type.Optional(Type.Integer()),
  }),
}

interface PastPayment {
  customer: string
  payment_method: string
  amount: number
  ago_s: number
}

// Objects of a whole account may be stored at once.
const LARGEST_BODY = 64 * 1024 * 1024

type ById = { Params: { id: string } }
type Post = <Body>(path: string, body: object | undefined, work: (body: Body, id: string) => unknown) => unknown

export function addControl(server: FastifyInstance, dialect: StripeDialect): void {
  const post: Post = (path, body, work) =>
    server.post<ById & { Body: never }>(
      `/_control${path}`,
      { bodyLimit: LARGEST_BODY, ...(body && { schema: { body } }) },
      async (request) => {
        const response = work(request.body as never, request.params.id) ?? {}
        await dialect.state.durable()
        return response
      },
    )
  post<{ advance_ms: number }>('/clock', bodies.clock, ({ advance_ms }) => {
    dialect.advance(advance_ms)
    return { now_ms: dialect.state.nowMs() }
  })
  post<Partial<OrderedFault> & Pick<OrderedFault, 'path' | 'kind'>>('/faults', bodies.fault, (fault) =>
    dialect.faults.order({ ms: 0, times: 1, ...fault }),
  )
  post('/faults/clear', undefined, () => dialect.faults.clear())
  post<object>('/events', bodies.events, (mode) => Object.assign(dialect.deliveries.mode, mode))
  post<{ key: string }>('/keys/revoke', bodies.key, ({ key }) => dialect.revokeKey(key))
  // Made that long ago, without events: they are older than an import that begins now.
  post<PastPayment>('/payments', bodies.payment, ({ ago_s, ...payment }) =>
    inThePast(dialect, ago_s, (quiet) => pay(quiet, { ...payment, currency: 'usd' })),
  )
  post<{ key: string; account: string }>('/keys/assign', bodies.other, ({ key, account }) =>
    dialect.others.assign(key, account),
  )
  post<{ charge: string; amount?: number }>('/refunds', bodies.refund, ({ charge: id, amount }) => {
    const charge = dialect.state.find('charge', id)
    if (!charge) throw missing('charge', id, 'charge', 404)
    return refund(dialect, charge, amount ?? charge.amount - charge.amount_refunded, {}, 'requested_by_customer')
  })
  post('/refunds/:id/fail', undefined, (_body, id) => failRefund(dialect, id))
  post<{ charge: string; reason?: string }>('/disputes', bodies.dispute, ({ charge, reason }) =>
    openDispute(dialect, charge, reason),
  )
  post<{ status: 'won' | 'lost' }>('/disputes/:id/close', bodies.verdict, ({ status }, id) =>
    closeDispute(dialect, id, status),
  )
  post<RenewedCard>('/payment_methods/:id/renew', bodies.card, (card, id) => renewCard(dialect, id, card))
  post<{ customers: number; seed?: number }>('/accounts', bodies.account, (account) =>
    fillDemoAccount(dialect, { seed: 1, ...account }),
  )
  post<{ objects: Objects[Kind][] }>('/objects', bodies.objects, ({ objects }) => {
    for (const object of objects) dialect.state.put(object)
  })
  checkouts(post, dialect)
  payouts(post, dialect)
  post('/subscriptions/:id/renew', undefined, (_body, id) => renew(dialect, id))
  post<{ keep_ms: number }>('/webhook_endpoints/:id/roll', bodies.roll, ({ keep_ms }, id) =>
    rollSecret(dialect, id, keep_ms),
  )
  server.get('/_control/calls', async () => ({ calls: dialect.calls }))
  server.get('/_control/ledger', async () => {
    await dialect.state.durable()
    return ledger(dialect)
  })
}

function checkouts(post: Post, dialect: StripeDialect): void {
  post<{ email?: string; ago_s?: number }>('/checkout/sessions/:id/pay', bodies.buyer, ({ email, ago_s }, id) => {
    if (ago_s === undefined) return payCheckout(dialect, id, email, 'pm_card_visa')
    return inThePast(dialect, ago_s, (quiet) => payCheckout(quiet, id, email, 'pm_card_visa'))
  })
}

function payouts(post: Post, dialect: StripeDialect): void {
  post('/payouts', undefined, () => payOut(dialect))
  post<{ ago_s: number }>('/payouts/past', bodies.pastPayout, ({ ago_s }) =>
    inThePast(dialect, ago_s, (quiet) => payOut(quiet)),
  )
  post('/payouts/:id/fail', undefined, (_body, id) => failPayout(dialect, id))
  post<Parameters<typeof adjust>[1] & { ago_s?: number }>(
    '/adjustments',
    bodies.adjustment,
    ({ ago_s = 0, ...given }) => inThePast(dialect, ago_s, (quiet) => adjust(quiet, given)),
  )
}

function inThePast<T>({ state, livemode }: StripeDialect, agoS: number, work: (quiet: Dialect) => T): T {
  return state.inThePast(state.now() - agoS, () => work({ state, livemode, emit() {} }))
}

/** Every movement of money, oldest first, by which tests detect double charges. */
function ledger({ state }: StripeDialect): object[] {
  const charges = state.all('charge').filter(({ status }) => status === 'succeeded')
  return [
    ...charges.map((charge) => ({ type: 'charge', ...pick(charge), payment_intent: charge.payment_intent })),
    ...state.all('refund').map((refund) => ({ type: 'refund', ...pick(refund), status: refund.status })),
  ]
}

function pick({
  id,
  amount,
  currency,
  metadata,
}: {
  id: string
  amount: number
  currency: string
  metadata: object | null
}) {
  return { id, amount, currency, metadata }
}
