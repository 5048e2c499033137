// Runs a simulator's server, with the ledger locked as long as it runs.
import type { FastifyInstance } from 'fastify'
import { lock } from './lock.ts'

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
