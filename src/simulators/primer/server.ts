// The simulator with Primer's API, as a server on 127.0.0.1 with its ledger and its control interface.
import type { FastifyInstance } from 'fastify'
import { addControl } from '../control.ts'
import { type DialectOptions, drop, journalOptions, openServer, runSimulator, type Simulator } from '../run.ts'
import { PrimerDialect } from './dialect.ts'
import { endRefund, existing, refund } from './payments.ts'
import { type Endpoint, State } from './state.ts'

export interface PrimerSimulatorOptions extends DialectOptions {
  /** How long a processed key is remembered; a day if omitted. */
  keyLifeMs?: number
  /** How long a new payment is missing in the list; not at all if omitted, although Primer says up to a minute. */
  listLagMs?: number
}

const DAY_MS = 86_400_000

/** Starts it. Throws a `UsageError` when another simulator has the ledger open, or it cannot be used. */
export function startPrimerSimulator(options: PrimerSimulatorOptions): Promise<Simulator> {
  return runSimulator(options, async () => {
    const state = await new State(journalOptions(options), options.keyLifeMs ?? DAY_MS).read()
    const dialect = new PrimerDialect(state, options.listLagMs ?? 0)
    return { server: build(dialect, options), close: () => dialect.close() }
  })
}

function build(dialect: PrimerDialect, { log }: PrimerSimulatorOptions): FastifyInstance {
  const server = openServer(
    log,
    () => dialect.state.durable(),
    (description) => ({ error: { errorId: 'RequestValidationError', description } }),
  )
  addActions(server, dialect)
  server.route<{ Querystring: Record<string, string>; Body: Record<string, unknown> | null }>({
    method: ['GET', 'POST', 'DELETE'],
    url: '/*',
    handler: async (request, reply) => {
      const { method, headers, query, body } = request
      const response = await dialect.respond({
        ...{ method, path: request.url.split('?')[0]!, query: { ...query }, body: { ...body } },
        apiKey: headers['x-api-key']?.toString(),
        version: headers['x-api-version']?.toString(),
        idempotencyKey: headers['x-idempotency-key']?.toString(),
      })
      return response === 'dropped' ? drop(reply) : reply.code(response.status).send(response.body)
    },
  })
  return server
}

/** Actions that happen at Primer by a processor, or by a user of the dashboard. */
function addActions(server: FastifyInstance, dialect: PrimerDialect): void {
  const control = addControl(server, dialect, () => ledger(dialect))
  const post = (path: string, work: (body: Record<string, unknown>) => unknown) => control(path, undefined, work)
  const { state } = dialect
  post('/webhook', (endpoint) => state.setEndpoint(endpoint as unknown as Endpoint))
  post('/webhook/rotate', ({ secret, keep_ms }) => {
    const before = state.endpoint!
    const until_ms = state.nowMs() + Number(keep_ms)
    state.setEndpoint({ ...before, secret: String(secret), rotated: { secret: before.secret, until_ms } })
  })
  // A saved card, as a checkout leaves it.
  post('/tokens', ({ token, customer }) => state.vault(String(token), String(customer)))
  // A refund that a user of the dashboard makes.
  post('/refunds', ({ id, amount }) => refund(dialect, String(id), amount === undefined ? {} : { amount }))
  post('/refunds/fail', ({ id, place }) => endRefund(dialect, `${id} ${place}`, 'FAILED'))
  post('/disputes', ({ id, status = 'OPEN', type = 'DISPUTE' }) => {
    const payment = existing(state, String(id))
    dialect.notify({
      ...{
        eventType: 'DISPUTE.STATUS',
        version: '2.4',
        type,
        status,
        primerAccountId: 'acct_1',
        paymentId: payment.id,
      },
      ...{
        transactionId: 'txn_1',
        orderId: payment.orderId,
        processor: 'ADYEN',
        processorDisputeId: `dp_${payment.id}`,
      },
      ...{ receivedAt: `${state.now()}Z`, reason: 'Fraudulent transaction', reasonCode: '4800' },
      ...{ amount: payment.amount, currency: payment.currencyCode, merchantId: 'TundishECOM' },
    })
  })
}

/** Every movement of money, oldest first, by which tests detect double charges. */
function ledger({ state }: PrimerDialect): object[] {
  return state.all().flatMap(({ id, orderId: key, metadata, processor, transactions }) =>
    transactions
      .filter(({ processorStatus: status }) => status === 'SETTLED' || status === 'PARTIALLY_SETTLED')
      .map(({ transactionType, amount, currencyCode, orderId }) => ({
        type: transactionType === 'SALE' ? 'charge' : 'refund',
        payment: id,
        key: transactionType === 'SALE' ? key : orderId,
        amount: transactionType === 'SALE' ? processor.amountCaptured : amount,
        currencyCode,
        metadata,
      })),
  )
}
