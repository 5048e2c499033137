// The simulator with Stripe's API, as a server on 127.0.0.1 with its ledger.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { systemClock } from '../../lib/clock.ts'
import { decodeForm } from '../../lib/http/form.ts'
import type { Reply } from '../dialect.ts'
import { type DialectOptions, drop, journalOptions, openServer, runSimulator, type Simulator } from '../run.ts'
import { addCheckoutPage } from './checkout-page.ts'
import { addActions } from './control.ts'
import { fillDemoAccount } from './demo-account.ts'
import { StripeDialect } from './dialect.ts'
import { API_VERSION } from './events.ts'
import { randomName, State } from './state.ts'

export interface StripeSimulatorOptions extends DialectOptions {
  /** True: takes live keys (`sk_live_…`) instead of test keys. */
  livemode?: boolean
  /** The number of made-up customers, with a history of two years, to fill an empty account with. */
  demoCustomers?: number
  /** The delay of every response in milliseconds, as over a network. */
  latencyMs?: number
}

/** Starts it. Throws a `UsageError` when another simulator has the ledger open, or it cannot be used. */
export function startStripeSimulator(options: StripeSimulatorOptions): Promise<Simulator> {
  return runSimulator(options, async () => {
    const state = await new State(journalOptions(options)).read()
    const dialect = new StripeDialect(state, options.livemode ?? false)
    const note = fillIfEmpty(dialect, options)
    return { server: build(dialect, options), close: () => dialect.close(), note }
  })
}

/** Returns a sentence if the demo customers that were asked for are not added, because the account is in use. */
function fillIfEmpty(
  dialect: StripeDialect,
  { demoCustomers, ledgerFile }: StripeSimulatorOptions,
): string | undefined {
  if (!demoCustomers) return undefined
  const { length } = dialect.state.all('customer')
  if (length > 0)
    return `The account in ${ledgerFile} has customers already (${length}), so none were added: start with another DATA_DIR for an empty account.`
  fillDemoAccount(dialect, { customers: demoCustomers, seed: 1 })
  return undefined
}

function build(dialect: StripeDialect, { log, latencyMs = 0 }: StripeSimulatorOptions): FastifyInstance {
  const server = openServer(
    log,
    () => dialect.state.durable(),
    (message) => ({ error: { type: 'invalid_request_error', message } }),
    { routerOptions: { querystringParser: (text) => ({ text }) } },
  )
  server.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, { text: body }),
  )
  addActions(server, dialect)
  addCheckoutPage(server, dialect)
  server.route<{ Querystring: { text?: string }; Body: { text?: string } | null }>({
    method: ['GET', 'POST', 'DELETE'],
    url: '/v1/*',
    handler: async (request, reply) => {
      const { method, headers } = request
      const response = await dialect.respond({
        method,
        path: request.url.split('?')[0]!,
        params: decodeForm((method === 'POST' ? request.body?.text : request.query.text) ?? ''),
        secretKey: readSecretKey(headers.authorization),
        idempotencyKey: headers['idempotency-key']?.toString(),
      })
      if (latencyMs > 0) await systemClock.sleep(latencyMs)
      return send(reply, withPage(response, request.host))
    },
  })
  return server
}

/** The page of a checkout session is one of this server. */
function withPage(reply: Reply, host: string): Reply {
  if (reply === 'dropped') return reply
  const { object, url } = reply.body as { object?: string; url?: string | null }
  return object === 'checkout.session' && url
    ? { ...reply, body: { ...reply.body, url: `http://${host}${url}` } }
    : reply
}

/** `Bearer KEY`, or the key as the user of basic authentication. */
function readSecretKey(header: string | undefined): string | undefined {
  const [scheme, value = ''] = header?.split(' ') ?? []
  if (scheme?.toLowerCase() === 'bearer') return value
  if (scheme?.toLowerCase() === 'basic') return Buffer.from(value, 'base64').toString('utf8').split(':')[0]
  return undefined
}

function send(reply: FastifyReply, response: Reply): FastifyReply {
  if (response === 'dropped') return drop(reply)
  if (response.isReplay) reply.header('idempotent-replayed', 'true')
  return reply
    .code(response.status)
    .headers({ 'request-id': `req_${randomName().slice(0, 14)}`, 'stripe-version': API_VERSION })
    .send(response.body)
}
