// Runs a simulator's server, with the ledger locked as long as it runs.
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyServerOptions,
} from 'fastify'
import { FormError } from '../lib/http/form.ts'
import { DialectError } from './dialect.ts'
import type { JournalOptions } from './journaled-state.ts'
import { lock } from './lock.ts'

export interface SimulatorOptions {
  /** 0 takes any free port. */
  port: number
  /** Made if it is missing; locked, so that one simulator at a time has it open. */
  ledgerFile: string
  log: Pick<FastifyBaseLogger, 'error'>
  /** False for tests and load on a slow disk only: a crash of the machine may then lose what was acknowledged. */
  fsync?: boolean
}

/** Of a simulator with a provider's API. */
export interface DialectOptions extends SimulatorOptions {
  /** Milliseconds since 1970 by another clock than the machine's. */
  wallClockMs?: () => number
}

export interface Simulator {
  url: string
  /** A sentence for the operator about an option that had no effect. */
  note?: string
  close(): Promise<void>
}

export interface Opened {
  server: FastifyInstance
  /** Closes the ledger, when the server is closed. */
  close(): Promise<void>
  note?: string | undefined
}

/** Opens it and listens on 127.0.0.1. Throws a `UsageError` when another simulator has the ledger open, or it cannot be used. */
export async function runSimulator(
  { ledgerFile, port }: { ledgerFile: string; port: number },
  open: () => Promise<Opened>,
): Promise<Simulator> {
  const unlock = lock(ledgerFile)
  try {
    const opened = await open()
    const close = async () => {
      await opened.server.close()
      await opened.close().finally(unlock)
    }
    const url = await opened.server.listen({ port, host: '127.0.0.1' }).catch(async (error) => {
      await close()
      throw error
    })
    return { url, close, ...(opened.note !== undefined && { note: opened.note }) }
  } catch (error) {
    unlock()
    throw error
  }
}

export function journalOptions({
  ledgerFile: file,
  fsync = true,
  wallClockMs = Date.now,
}: DialectOptions): JournalOptions {
  return { file, fsync, wallClockMs }
}

/**
 * A server with `/health`, which waits for the disk.
 * @param bodyOf the body of a response about a request that is refused before it reaches the API
 */
export function openServer(
  log: SimulatorOptions['log'],
  durable: () => Promise<void>,
  bodyOf: (message: string) => object,
  options: FastifyServerOptions = {},
): FastifyInstance {
  const server = fastify({
    logger: false,
    forceCloseConnections: true,
    bodyLimit: 256 * 1024,
    // The schemas are our own; compiling the validator of schemas would take longer than all the rest of the start.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, meta: false, validateSchema: false } },
    ...options,
  })
  server.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    if (error instanceof DialectError) return reply.code(error.status).send({ error: error.body })
    const status = error instanceof FormError ? 400 : (error.statusCode ?? 500)
    if (status >= 500) log.error({ err: error }, 'The simulator could not respond.')
    return reply.code(status).send(bodyOf(error.message))
  })
  server.get('/health', async () => {
    await durable()
    return { status: 'ok' }
  })
  return server
}

/** Breaks the connection without a response. */
export function drop(reply: FastifyReply): FastifyReply {
  reply.hijack()
  reply.raw.destroy()
  return reply
}
