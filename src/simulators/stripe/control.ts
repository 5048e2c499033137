// The actions of the control interface that at Stripe happen by a bank, or by a user of the dashboard.
import type { FastifyInstance } from 'fastify'
import { Type } from '../../lib/shape/schema.ts'
import { addControl, type Post } from '../control.ts'
import { type Dialect, existing, quiet } from './call.ts'
import { payCheckout } from './checkout.ts'
import { fillDemoAccount } from './demo-account.ts'
import type { StripeDialect } from './dialect.ts'
import { closeDispute, openDispute } from './disputes.ts'
import { rollSecret } from './events.ts'
import { pay } from './payment-intents.ts'
import { renewCard } from './payment-methods.ts'
import { adjust, failPayout, payOut } from './payouts.ts'
import { failRefund, refund } from './refunds.ts'
import type { Kind, Objects } from './state.ts'
import { renew } from './subscriptions.ts'

const Id = Type.String({ minLength: 1, maxLength: 255 })
const Milliseconds = Type.Integer({ minimum: 0 })

const bodies = {
  payment: Type.Object({
    customer: Id,
    payment_method: Id,
    amount: Type.Integer({ minimum: 1 }),
    ago_s: Type.Integer({ minimum: 0 }),
  }),
  refund: Type.Object({ charge: Id, amount: Type.Optional(Type.Integer({ minimum: 1 })) }),
  dispute: Type.Object({ charge: Id, reason: Type.Optional(Type.String()) }),
  verdict: Type.Object({ status: Type.Union([Type.Literal('won'), Type.Literal('lost')]) }),
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

export function addActions(server: FastifyInstance, dialect: StripeDialect): void {
  const post = addControl(server, dialect, () => ledger(dialect))
  // Made that long ago, without events: they are older than an import that begins now.
  post('/payments', bodies.payment, ({ ago_s, ...payment }) =>
    inThePast(dialect, ago_s, (past) => pay(past, { ...payment, currency: 'usd' })),
  )
  post('/keys/assign', bodies.other, ({ key, account }) => dialect.others.set(key, account))
  post('/refunds', bodies.refund, ({ charge: id, amount }) => {
    const charge = existing(dialect, 'charge', id, 'charge', 404)
    return refund(dialect, charge, amount ?? charge.amount - charge.amount_refunded, {}, 'requested_by_customer')
  })
  post('/refunds/:id/fail', undefined, (_body, id) => failRefund(dialect, id))
  post('/disputes', bodies.dispute, ({ charge, reason }) => openDispute(dialect, charge, reason))
  post('/disputes/:id/close', bodies.verdict, ({ status }, id) => closeDispute(dialect, id, status))
  post('/payment_methods/:id/renew', bodies.card, (card, id) => renewCard(dialect, id, card))
  post('/accounts', bodies.account, (account) => fillDemoAccount(dialect, { seed: 1, ...account }))
  post('/objects', bodies.objects, ({ objects }) => {
    for (const object of objects) dialect.state.put(object as Objects[Kind])
  })
  post('/checkout/sessions/:id/pay', bodies.buyer, ({ email, ago_s }, id) => {
    if (ago_s === undefined) return payCheckout(dialect, id, email, 'pm_card_visa')
    return inThePast(dialect, ago_s, (past) => payCheckout(past, id, email, 'pm_card_visa'))
  })
  payouts(post, dialect)
  post('/subscriptions/:id/renew', undefined, (_body, id) => renew(dialect, id))
  post('/webhook_endpoints/:id/roll', bodies.roll, ({ keep_ms }, id) => rollSecret(dialect, id, keep_ms))
}

function payouts(post: Post, dialect: StripeDialect): void {
  post('/payouts', undefined, () => payOut(dialect))
  post('/payouts/past', bodies.pastPayout, ({ ago_s }) => inThePast(dialect, ago_s, payOut))
  post('/payouts/:id/fail', undefined, (_body, id) => failPayout(dialect, id))
  post('/adjustments', bodies.adjustment, ({ ago_s = 0, ...given }) =>
    inThePast(dialect, ago_s, (past) => adjust(past, given)),
  )
}

function inThePast<T>(dialect: StripeDialect, agoS: number, work: (past: Dialect) => T): T {
  return dialect.state.inThePast(dialect.state.now() - agoS, () => work(quiet(dialect)))
}

/** Every movement of money, oldest first, by which tests detect double charges. */
function ledger({ state }: StripeDialect): object[] {
  const charges = state.all('charge').filter(({ status }) => status === 'succeeded')
  return [
    ...charges.map((charge) => ({ type: 'charge', ...pick(charge), payment_intent: charge.payment_intent })),
    ...state.all('refund').map((refund) => ({ type: 'refund', ...pick(refund), status: refund.status })),
  ]
}

const pick = ({ id, amount, currency, metadata }: Objects['charge' | 'refund']) => ({ id, amount, currency, metadata })
