// A quiz funnel: answers, an e-mail address, a payment at Stripe, then tokens that are bought with the saved card and spent.
// Needs PROJECT_KEY, ORGANIZATION, ORGANIZATION_KEY, WEBHOOK_SECRET, STRIPE_API, STRIPE_KEY; `npm run example` sets them.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
// In your program: from '@tundish/client'.
import { Tundish, TundishError, webhooks } from '../../clients/js/src/index.ts'
import { accountPage, emailPage, messagePage, payPage, questionPage } from './pages.mjs'

const {
  ORGANIZATION,
  ORGANIZATION_KEY,
  PORT = '3000',
  PROJECT_KEY,
  STRIPE_API,
  STRIPE_KEY,
  WEBHOOK_SECRET,
} = process.env
const { TUNDISH_URL: url = 'http://127.0.0.1:8080' } = process.env
const HOME = `http://127.0.0.1:${PORT}`
const FUNNEL = { id: 'fun_example', version: 1 }
const QUESTIONS = [
  { id: 'hours', text: 'How many hours do you sleep?', options: ['5 or fewer', '6 to 7', '8 or more'] },
  { id: 'goal', text: 'What would you like to change?', options: ['Fall asleep sooner', 'Wake up rested'] },
]
const PACK = { amount: '4.99', currencyCode: 'USD', grants: [{ unit: 'tokens', amount: '100' }] }
const LESSON = '10'

const tundish = new Tundish({ url, projectKey: PROJECT_KEY, organization: { id: ORGANIZATION, key: ORGANIZATION_KEY } })

/** What a shop keeps in its database. By the id of the profile, which is in the visitor's cookie. */
const visitors = new Map()
/** Events by their id: one that comes twice is known. */
const events = new Map()

const now = () => new Date().toISOString()
const id = (prefix) => `${prefix}_${randomUUID().replaceAll('-', '')}`

tundish.ingest({
  record: 'funnel',
  data: {
    id: FUNNEL.id,
    title: 'Sleep quiz (example)',
    alias: 'example',
    type: 'default',
    status: 'published',
    version: 1,
    created_at: '2026-01-01T00:00:00Z',
  },
})
const price = await makePrice()

async function makePrice() {
  const product = await stripe('products', { name: 'Sleep plan' })
  return (
    await stripe('prices', { product: product.id, currency: 'usd', unit_amount: 1999, 'recurring[interval]': 'month' })
  ).id
}

/** With Stripe's own package: `stripe.products.create(…)`. */
async function stripe(path, fields) {
  const response = await fetch(`${STRIPE_API}/v1/${path}`, {
    method: fields ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${STRIPE_KEY}`, 'content-type': 'application/x-www-form-urlencoded' },
    ...(fields && { body: new URLSearchParams(fields).toString() }),
  })
  if (!response.ok) throw new Error(`Stripe responded with ${response.status}: ${await response.text()}`)
  return response.json()
}

/** A new visitor is a profile without a name, and a session of the funnel. */
function visit(request) {
  const profile = id('pro')
  const visitor = { profile, session: id('ses'), step: 0, customer: undefined, order: undefined, isRefunded: false }
  const { searchParams } = new URL(request.url, HOME)
  tundish.identify({ id: profile, created_at: now(), funnel_id: FUNNEL.id })
  tundish.session({
    id: visitor.session,
    created_at: now(),
    profile_id: profile,
    funnel_id: FUNNEL.id,
    funnel_version: FUNNEL.version,
    user_agent: request.headers['user-agent'] ?? null,
    query_params: Object.fromEntries(searchParams),
  })
  visitors.set(profile, visitor)
  return visitor
}

function answer(visitor, { value }) {
  const { id, options } = QUESTIONS[visitor.step]
  if (!options.includes(value)) return
  const place = { element: { id, type: 'SingleSelect' }, screen: { id: `scr_${id}`, index: visitor.step } }
  tundish.reply({ session_id: visitor.session, ...place, value })
  visitor.step += 1
}

function leaveEmail(visitor, { email }) {
  tundish.identify({ id: visitor.profile, email })
  visitor.email = email
}

/** The metadata names the person and the visit: so the payment comes to their profile. */
async function pay(visitor) {
  const checkout = await stripe('checkout/sessions', {
    mode: 'subscription',
    'line_items[0][price]': price,
    'line_items[0][quantity]': '1',
    customer_email: visitor.email,
    'metadata[tundish_profile]': visitor.profile,
    'metadata[tundish_session]': visitor.session,
    success_url: `${HOME}/paid?checkout={CHECKOUT_SESSION_ID}`,
  })
  return new URL(checkout.url, STRIPE_API).href
}

/**
 * Tundish knows the customer by Stripe's id, unless the import is told another. A visitor can open this address with the checkout of
 * another person, whose card would be charged then.
 */
async function paid(visitor, checkout) {
  const { customer, metadata, status } = await stripe(`checkout/sessions/${encodeURIComponent(checkout)}`)
  if (metadata?.tundish_profile !== visitor.profile || status !== 'complete')
    throw new Error('This is not your checkout.')
  visitor.customer = customer
}

/** `key` was made with the form: sent twice, it is charged once. */
async function buyPack(visitor, { key }) {
  const charge = await whenKnown(() =>
    tundish.billing.chargeUntilSettled({ ...PACK, externalId: visitor.customer, idempotencyKey: key }),
  )
  if (charge.checkout_status !== 'succeeded') throw new Error('The card was declined.')
  visitor.order = charge.order_id
}

/** The payment is known some seconds after it was made, when Stripe's notification has arrived. A refusal charges nothing. */
async function whenKnown(charge) {
  for (let tries = 1; ; tries++) {
    try {
      return await charge()
    } catch (error) {
      const isEarly =
        error instanceof TundishError &&
        ['unknown_customer', 'no_successful_payment', 'no_saved_card'].includes(error.code)
      if (!isEarly || tries === 60) throw error
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
}

const takeLesson = (visitor, { key }) =>
  tundish.billing.credits.spend({
    externalId: visitor.customer,
    unit: 'tokens',
    amount: LESSON,
    idempotencyKey: key,
    metadata: { lesson: 1 },
  })

async function refund(visitor) {
  await tundish.billing.refund({
    externalId: visitor.customer,
    orderId: visitor.order,
    idempotencyKey: `refund-${visitor.order}`,
  })
  visitor.isRefunded = true
}

async function erase(visitor) {
  // What is queued about them is written first.
  await tundish.flush({ timeoutMs: 10_000 })
  await tundish.profiles.anonymize([visitor.profile])
  visitors.delete(visitor.profile)
}

async function show(visitor) {
  if (visitor.step < QUESTIONS.length) return questionPage(QUESTIONS[visitor.step])
  if (!visitor.email) return emailPage()
  if (!visitor.customer) return payPage()
  const [tokens] = await tundish.billing.credits.balance(visitor.customer)
  return accountPage({ ...visitor, tokens: tokens?.available ?? '0', key: randomUUID() })
}

const ACTIONS = { '/answer': answer, '/email': leaveEmail, '/pack': buyPack, '/lesson': takeLesson, '/refund': refund }

async function respond(request, body) {
  const { pathname, searchParams } = new URL(request.url, HOME)
  const known = visitors.get(/(?:^|; )visitor=(\w+)/.exec(request.headers.cookie ?? '')?.[1])
  if (request.method === 'GET' && pathname === '/') {
    const visitor = known ?? visit(request)
    return { page: await show(visitor), cookie: visitor.profile }
  }
  if (!known) return { to: '/' }
  if (request.method === 'GET' && pathname === '/paid') await paid(known, searchParams.get('checkout'))
  else if (request.method === 'POST' && pathname === '/pay') return { to: await pay(known) }
  else if (request.method === 'POST' && pathname === '/erase') {
    await erase(known)
    return { page: messagePage('Your data is deleted.'), cookie: '' }
  } else if (request.method === 'POST' && Object.hasOwn(ACTIONS, pathname))
    await ACTIONS[pathname](known, Object.fromEntries(new URLSearchParams(body)))
  return { to: '/' }
}

/** Stored by its id, so that an event that comes twice counts once. */
function receive(request, body) {
  const event = webhooks.unwrap(body, request.headers, WEBHOOK_SECRET)
  events.set(event.id, event)
  console.log(`event: ${event.type}`)
}

const server = createServer(async (request, response) => {
  try {
    let body = ''
    for await (const part of request.setEncoding('utf8')) body += part
    if (request.url === '/webhooks') {
      receive(request, body)
      return response.writeHead(204).end()
    }
    if (request.url === '/events')
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify([...events.values()]))
    const { page, to, cookie } = await respond(request, body)
    if (cookie !== undefined) response.setHeader('set-cookie', `visitor=${cookie}; Path=/; HttpOnly; SameSite=Lax`)
    if (to !== undefined) return response.writeHead(303, { location: to }).end()
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
  } catch (error) {
    console.error(error.message)
    const code = error instanceof TundishError ? error.code : error.message
    response
      .writeHead(502, { 'content-type': 'text/html; charset=utf-8' })
      .end(messagePage(`That did not work: ${code}`))
  }
})

// What is queued is sent before the program ends.
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, async () => {
    server.close()
    const left = await tundish.close()
    if (left.length > 0) console.error('Not sent:', JSON.stringify(left))
    process.exit()
  })

server.listen(Number(PORT), '127.0.0.1', () => console.log(`The quiz: ${HOME}`))
