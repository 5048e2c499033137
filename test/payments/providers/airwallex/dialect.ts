// A small server that speaks the part of Airwallex's API that the adapter uses, in memory. Tokens of consents decide what happens.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../../support/cli.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of the API.
type Json = Record<string, any>

class Refused extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

/** How a consent behaves: `cst_good`, `cst_FAILURE`, or `cst_` with one of the faults. */
const FAULTS = ['drop_before', 'drop_after', 'late', 'slow', 'refund_drop_after', 'refund_drop_before']

export async function openAirwallex() {
  const intents = new Map<string, Json>()
  const refunds: Json[] = []
  const used = new Set<string>()
  let made = 0
  // Whole seconds, as Airwallex writes them: what is made within one has the same time.
  const now = () => new Date().toISOString().replace(/\.\d+Z$/, '+0000')
  const once = (id: unknown) => {
    if (typeof id !== 'string' || id.length > 64) throw new Refused(400, 'validation_error')
    if (used.has(id)) throw new Refused(400, 'duplicate_request')
    used.add(id)
  }
  const existing = (id: string) => {
    const intent = intents.get(id)
    if (!intent) throw new Refused(404, 'resource_not_found')
    return intent
  }
  const faultOf = (consent: string) => FAULTS.find((fault) => consent === `cst_${fault}`)

  function create(body: Json): Json {
    once(body['request_id'])
    if (typeof body['amount'] !== 'number' || body['amount'] <= 0) throw new Refused(400, 'validation_error')
    const { amount, currency, merchant_order_id, metadata } = body
    const intent = { id: `int_${++made}`, amount, currency, merchant_order_id, metadata, created_at: now() }
    intents.set(intent.id, { ...intent, captured_amount: 0, status: 'REQUIRES_PAYMENT_METHOD' })
    return existing(intent.id)
  }

  function confirm(id: string, { request_id, payment_consent_id: consent }: Json): Json {
    once(request_id)
    const intent = existing(id)
    if (intent['status'] !== 'REQUIRES_PAYMENT_METHOD') throw new Refused(400, 'invalid_status_for_operation')
    const isGood = consent === 'cst_good' || faultOf(consent) !== undefined
    const needsAction = consent === 'cst_authentication_required'
    const card = { brand: 'visa', bin: '41111111', last4: '1111', expiry_month: '12', expiry_year: '2034' }
    const attempt = {
      ...{
        created_at: now(),
        status: isGood ? 'CAPTURE_REQUESTED' : needsAction ? 'AUTHENTICATION_REDIRECTED' : 'FAILED',
        payment_method: { type: 'card', card },
      },
      ...(!isGood &&
        !needsAction && {
          failure_code: consent.slice(4),
          merchant_advice_code: consent === 'cst_stolen' ? '03' : '02',
        }),
    }
    const more = isGood
      ? { status: 'SUCCEEDED', captured_amount: intent['amount'] }
      : { status: needsAction ? 'REQUIRES_CUSTOMER_ACTION' : 'REQUIRES_PAYMENT_METHOD' }
    intents.set(id, { ...intent, ...more, payment_consent_id: consent, latest_payment_attempt: attempt })
    return existing(id)
  }

  function cancel(id: string, { request_id }: Json): Json {
    once(request_id)
    const intent = existing(id)
    if (intent['status'] === 'SUCCEEDED' || intent['status'] === 'CANCELLED')
      throw new Refused(400, 'invalid_status_for_operation')
    intents.set(id, { ...intent, status: 'CANCELLED' })
    return existing(id)
  }

  function refund(body: Json): Json {
    once(body['request_id'])
    const intent = existing(body['payment_intent_id'])
    const before = refunds.filter((one) => one['payment_intent_id'] === intent['id'])
    const cents = (amount: number) => Math.round(amount * 100)
    const sum = before.reduce((total, { amount }) => total + cents(amount), cents(body['amount']))
    if (sum > cents(intent['captured_amount'])) throw new Refused(400, 'amount_above_limit')
    const { amount, payment_intent_id, metadata } = body
    const made = { amount, payment_intent_id, metadata, currency: intent['currency'], created_at: now() }
    refunds.push({ ...made, id: `rfd_${refunds.length + 1}`, status: 'ACCEPTED' })
    return refunds.at(-1)!
  }

  const list = (all: Json[], query: URLSearchParams, filter: string) => {
    const wanted = query.get(filter)
    const found = all.filter((one) => wanted === null || one[filter] === wanted).reverse()
    const from = Number(query.get('page_num')) * Number(query.get('page_size'))
    const items = found.slice(from, from + Number(query.get('page_size')))
    return { items, has_more: from + items.length < found.length }
  }

  function run(method: string, url: URL, body: Json): Json {
    const [, , , , kind, id = '', verb = ''] = url.pathname.split('/')
    if (method === 'GET' && id === '')
      return kind === 'refunds'
        ? list(refunds, url.searchParams, 'payment_intent_id')
        : list([...intents.values()], url.searchParams, 'merchant_order_id')
    if (method === 'GET') return existing(decodeURIComponent(id))
    if (kind === 'refunds') return refund(body)
    if (id === 'create') return create(body)
    return verb === 'confirm' ? confirm(id, body) : cancel(id, body)
  }

  const logins = { count: 0 }
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'http://localhost')
    const text = (await Array.fromAsync(request as AsyncIterable<Buffer>)).join('')
    const body = text === '' ? {} : JSON.parse(text)
    const send = (status: number, value: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (url.pathname.endsWith('/login')) {
      logins.count += 1
      return void send(201, { token: 'token', expires_at: now() })
    }
    const isRefund = url.pathname.endsWith('/refunds/create')
    const consent = isRefund
      ? intents.get(body['payment_intent_id'])?.['payment_consent_id']
      : body['payment_consent_id']
    const fault = request.method === 'POST' && consent ? faultOf(consent) : undefined
    const is = (name: string) => fault === (isRefund ? `refund_${name}` : name)
    if (is('drop_before')) return void request.socket.destroy()
    if (is('late')) {
      request.socket.destroy()
      await sleep(300)
    }
    try {
      const done = run(request.method!, url, body)
      if (is('late')) return
      if (is('drop_after')) return void request.socket.destroy()
      if (is('slow')) await sleep(3_000)
      send(request.method === 'GET' ? 200 : 201, done)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (!response.destroyed) send(error.status, { code: error.code, message: `Rejected: ${error.code}.` })
    }
  }

  const listen = async (port: number) => {
    const server = createServer((request, response) => void respond(request, response))
    await new Promise<void>((done) => server.listen(port, '127.0.0.1', done))
    return server
  }
  const port = await freePort()
  let server = await listen(port)
  const stop = async () => {
    const closed = new Promise((done) => server.close(done))
    server.closeAllConnections()
    await closed
    // The clients in this process read the end of their connections.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((done) => setImmediate(done))
  }
  return {
    url: `http://127.0.0.1:${port}`,
    /** The state, which a test may change. */
    intents,
    refunds,
    /** As when the life of the keys is over. */
    forgetKeys: () => used.clear(),
    stop,
    start: async () => {
      server = await listen(port)
    },
    cleanUp: stop,
  }
}
