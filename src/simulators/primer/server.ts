// The simulator with Primer's API, as a server on 127.0.0.1 with its ledger and its control interface.
import { randomBytes } from 'node:crypto'
import fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { systemClock } from '../../lib/clock.ts'
import { runSimulator, type Simulator } from '../run.ts'
import { type OrderedFault, PrimerDialect } from './dialect.ts'
import { PrimerError } from './errors.ts'
import { endRefund, existing, refund } from './payments.ts'
import type { Endpoint } from './state.ts'

export interface PrimerSimulatorOptions {
  /** 0 takes any free port. */
  port: number
  /** Made if it is missing; locked, so that one simulator at a time has it open. */
  ledgerFile: string
  log: Pick<FastifyBaseLogger, 'error'>
  /** False for tests and load on a slow disk only: a crash of the machine may then lose what was acknowledged. */
  fsync?: boolean
  /** How long a processed key is remembered; a day if omitted. */
  keyLifeMs?: number
  /** How long a new payment is missing in the list; not at all if omitted, although Primer says up to a minute. */
  listLagMs?: number
  /** Milliseconds since 1970 by another clock than the machine's. */
  wallClockMs?: () => number
}

const DAY_MS = 86_400_000

/** Starts it. Throws a `UsageError` when another simulator has the ledger open, or it cannot be used. */
export function startPrimerSimulator(options: PrimerSimulatorOptions): Promise<Simulator> {
  return runSimulator(options, async () => {
    const dialect = await PrimerDialect.open({
      file: options.ledgerFile,
      fsync: options.fsync ?? true,
      wallClockMs: options.wallClockMs ?? Date.now,
      randomId: () => randomBytes(9).toString('base64url').replace(/[-_]/g, 'x'),
      keyLifeMs: options.keyLifeMs ?? DAY_MS,
      listLagMs: options.listLagMs ?? 0,
      sleep: systemClock.sleep,
    })
    return { server: build(dialect, options), close: () => dialect.close() }
  })
}

function build(dialect: PrimerDialect, { log }: PrimerSimulatorOptions): FastifyInstance {
  const server = fastify({ logger: false, forceCloseConnections: true, bodyLimit: 256 * 1024 })
  server.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    if (error instanceof PrimerError) return reply.code(error.status).send({ error: error.body })
    const status = error.statusCode ?? 500
    if (status >= 500) log.error({ err: error }, 'The simulator could not respond.')
    return reply.code(status).send({ error: { errorId: 'RequestValidationError', description: error.message } })
  })
  server.get('/health', async () => {
    await dialect.state.durable()
    return { status: 'ok' }
  })
  addControl(server, dialect)
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
      if (response !== 'dropped') return reply.code(response.status).send(response.body)
      reply.hijack()
      reply.raw.destroy()
      return reply
    },
  })
  return server
}

type Control = Record<string, unknown> & { id?: string }

/** Actions that happen at Primer by time, by a processor, or by a user of the dashboard. */
function addControl(server: FastifyInstance, dialect: PrimerDialect): void {
  const post = (path: string, work: (body: Control) => unknown) =>
    server.post<{ Body: Control | null }>(`/_control${path}`, async ({ body }) => {
      const response = work(body ?? {}) ?? {}
      await dialect.state.durable()
      return response
    })
  const { state } = dialect
  post('/clock', ({ advance_ms }) => dialect.advance(Number(advance_ms)))
  post('/faults', (fault) => {
    dialect.faults.order({ ms: 0, times: 1, ...fault } as unknown as OrderedFault)
  })
  post('/faults/clear', () => dialect.faults.clear())
  post('/events', (mode) => Object.assign(dialect.deliveries.mode, mode))
  post('/keys/revoke', ({ key }) => {
    dialect.revoked.add(String(key))
  })
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
  server.get('/_control/calls', async () => ({ calls: dialect.calls }))
  server.get('/_control/ledger', async () => {
    await state.durable()
    return ledger(dialect)
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
