// The page on which a customer pays a checkout session, in place of Stripe's own.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { decodeForm } from '../../lib/http/form.ts'
import { type CheckoutSession, payCheckout } from './checkout.ts'
import type { StripeDialect } from './dialect.ts'
import { StripeError } from './errors.ts'

// Stripe's test numbers, and the payment methods of its test mode that behave like them.
const CARDS = {
  '4242424242424242': 'pm_card_visa',
  '5555555555554444': 'pm_card_mastercard',
  '4000000000009995': 'pm_card_chargeDeclinedInsufficientFunds',
} as const

export function addCheckoutPage(server: FastifyInstance, dialect: StripeDialect): void {
  type ById = { Params: { id: string } }
  server.get<ById>('/c/pay/:id', async (request, reply) => {
    const session = dialect.state.find('checkout.session', request.params.id)
    return session ? page(reply, session) : reply.code(404).send()
  })
  server.post<ById & { Body: { text?: string } | null }>('/c/pay/:id', async (request, reply) => {
    const { id } = request.params
    const session = dialect.state.find('checkout.session', id)
    if (!session) return reply.code(404).send()
    const { email, card } = decodeForm(request.body?.text ?? '')
    const number = String(card ?? '').replaceAll(' ', '')
    const method = Object.hasOwn(CARDS, number) ? CARDS[number as keyof typeof CARDS] : undefined
    if (!method) return page(reply, session, 'Use one of the test cards.')
    try {
      const paid = payCheckout(dialect, id, email ? String(email) : undefined, method)
      await dialect.state.durable()
      return reply.redirect(paid.success_url!.replaceAll('{CHECKOUT_SESSION_ID}', id), 303)
    } catch (error) {
      if (!(error instanceof StripeError)) throw error
      return page(reply, session, error.body.message)
    }
  })
}

function page(reply: FastifyReply, session: CheckoutSession, problem?: string): FastifyReply {
  const amount = `${((session.amount_total ?? 0) / 100).toFixed(2)} ${session.currency?.toUpperCase()}`
  const email = session.customer_email
  const options = Object.keys(CARDS).map((number) => `<option>${number}</option>`)
  return reply.type('text/html; charset=utf-8').send(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Pay ${amount}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:24rem;margin:3rem auto;padding:0 1rem}
label,input,button{display:block;width:100%;box-sizing:border-box}input,button{font:inherit;padding:.6rem;margin:.25rem 0 1rem}</style>
</head><body><main><h1>Pay ${amount}</h1>
<p>A simulated checkout: no money moves.</p>${problem ? `<p role="alert">${escaped(problem)}</p>` : ''}
${
  session.status === 'open'
    ? `<form method="post">
${email ? `<p>${escaped(email)}</p>` : '<label>E-mail <input name="email" type="email" required></label>'}
<label>Card number <input name="card" list="cards" value="4242424242424242" inputmode="numeric" required></label>
<datalist id="cards">${options.join('')}</datalist>
<button>Pay</button></form>`
    : `<p>This checkout is ${session.status}.</p>`
}</main></body></html>`)
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string) => text.replace(/[&<>"]/g, (one) => ENTITIES[one]!)
