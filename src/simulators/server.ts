// The provider simulator: an HTTP server that moves test money and keeps a ledger.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { readCurrency } from '../lib/money.ts'
import { Type } from '../lib/shape/schema.ts'
import { readQueryInstant, TimeError } from '../lib/time.ts'
import { type ClosedEntry, type Kind, Ledger } from './ledger.ts'
import { lineOf, outcomeOf } from './outcome-json.ts'
import { Outcomes, type Reply } from './outcomes.ts'
import { drop, openServer, runSimulator, type Simulator, type SimulatorOptions } from './run.ts'

const Key = Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$' })
const shared = {
  key: Key,
  reference: Type.String({ minLength: 1, maxLength: 128 }),
  amount_minor: Type.String({ pattern: '^[1-9][0-9]{0,23}$' }),
  currency_code: Type.String({ pattern: '^[A-Z]{3}$' }),
  merchant_id: Type.String({ maxLength: 256 }),
  region: Type.OrNull(Type.String({ maxLength: 256 })),
}
const ChargeIn = Type.Object(
  { ...shared, token: Type.String({ minLength: 1, maxLength: 256 }) },
  { additionalProperties: false },
)
const RefundIn = Type.Object({ ...shared, charge_transaction_id: Type.String() }, { additionalProperties: false })
const KeyPath = Type.Object({ key: Key })
const RefundsQuery = Type.Object({ charge_transaction_id: Type.String() }, { additionalProperties: false })
const LedgerQuery = Type.Object({ since: Type.Optional(Type.String()) }, { additionalProperties: false })

interface MovementIn {
  key: string
  reference: string
  amount_minor: string
  currency_code: string
  merchant_id: string
  region: string | null
  /** Of a charge. */
  token?: string
  /** Of a refund. */
  charge_transaction_id?: string
}

type AtKey = { Params: { key: string } }

/** Starts it on 127.0.0.1. Throws a `UsageError` when another simulator has the ledger open, or it cannot be used. */
export function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  return runSimulator(options, async () => {
    const ledger = await Ledger.open(options.ledgerFile, options.fsync ?? true)
    const outcomes = new Outcomes(ledger, (error) => options.log.error({ err: error }, 'The ledger cannot be written.'))
    const server = build(ledger, outcomes, options.log)
    server.addHook('preClose', async () => outcomes.close())
    return { server, close: () => ledger.close() }
  })
}

function build(ledger: Ledger, outcomes: Outcomes, log: SimulatorOptions['log']): FastifyInstance {
  const server = openServer(
    log,
    () => ledger.durable(),
    (message) => ({ message }),
  )
  addKind(server, outcomes, 'charge', '/charges', ChargeIn)
  addKind(server, outcomes, 'refund', '/refunds', RefundIn)
  addRefundsOfCharge(server, ledger)
  addLedger(server, ledger)
  return server
}

function addKind(
  app: FastifyInstance,
  outcomes: Outcomes,
  kind: Kind,
  path: string,
  schema: typeof ChargeIn | typeof RefundIn,
): void {
  app.post<{ Body: MovementIn }>(path, { schema: { body: schema } }, async (request, reply) => {
    const { key, ...order } = request.body
    // The ledger lists major units, so the decimals of the currency must be known.
    if (readCurrency(order.currency_code) !== order.currency_code) {
      return reply.code(400).send({ message: `currency_code ${order.currency_code} is not a known currency.` })
    }
    return send(reply, await outcomes.take(kind, key, { token: '', charge_transaction_id: null, ...order }))
  })
  app.get<AtKey>(`${path}/:key`, { schema: { params: KeyPath } }, async (request, reply) =>
    send(reply, await outcomes.look(kind, request.params.key)),
  )
  app.post<AtKey>(`${path}/:key/refuse`, { schema: { params: KeyPath } }, async (request, reply) =>
    send(reply, await outcomes.refuse(kind, request.params.key)),
  )
}

function send(reply: FastifyReply, outcome: Reply): FastifyReply {
  switch (outcome.state) {
    case 'dropped':
      return drop(reply)
    case 'error':
      return reply.code(500).send({ message: 'Simulated failure.' })
    case 'not_found':
      return reply.code(404).send({ outcome: 'not_found', message: 'There is nothing under this key.' })
    case 'conflict':
      return reply.code(409).send({ outcome: 'conflict', message: 'The key belongs to another movement of money.' })
    case 'refused':
      return reply.send({ outcome: 'refused' })
    default:
      return reply.send(outcomeOf(outcome))
  }
}

/** The refunds of one charge that succeeded, each as the response about its key. */
function addRefundsOfCharge(app: FastifyInstance, ledger: Ledger): void {
  app.get<{ Querystring: { charge_transaction_id: string } }>(
    '/refunds',
    { schema: { querystring: RefundsQuery } },
    async (request) => {
      const refunds = ledger.refundsOf(request.query.charge_transaction_id)
      await ledger.durable()
      return { refunds: refunds.map((entry) => ({ key: entry.key, ...outcomeOf(entry), at: entry.at })) }
    },
  )
}

/** A JSON array with one movement on each line, so that a reader can stream it. */
function addLedger(app: FastifyInstance, ledger: Ledger): void {
  app.get<{ Querystring: { since?: string } }>(
    '/ledger',
    { schema: { querystring: LedgerQuery } },
    async (request, reply) => {
      const since = readSince(request.query.since)
      if (since === null) return reply.code(400).send({ message: 'since must be a date-time as RFC 3339 has it.' })
      const movements = ledger.movements().slice()
      await ledger.durable()
      return reply.type('application/json').send(Readable.from(listed(movements, since)))
    },
  )
}

function readSince(text: string | undefined): string | null {
  try {
    return text === undefined ? '' : readQueryInstant(text)
  } catch (error) {
    if (error instanceof TimeError) return null
    throw error
  }
}

/** Stamps are all of one form, so their text compares as they do. */
function* listed(movements: readonly ClosedEntry[], since: string): Generator<string> {
  let page = '[\n'
  let comma = ''
  for (const entry of movements) {
    if (entry.at < since) continue
    page += `${comma}${lineOf(entry)}`
    comma = ',\n'
    if (page.length < 32_768) continue
    yield page
    page = ''
  }
  yield `${page}\n]\n`
}
