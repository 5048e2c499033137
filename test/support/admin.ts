// The operator's API: a server, a key with the scope `write`, and requests with it.

import { createOperator, type Scope } from '../../src/core/tenants/operator-keys.ts'
import { startServer } from '../../src/server/listeners/server.ts'
import { inFront } from '../shards/in-front.ts'
import { checkErrorCode } from './error-codes.ts'
import type { openEvents } from './events.ts'

export interface AdminResponse {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what tests check.
  body: any
}

/** Serves the app of `events`; `call` uses a key with the scope `write` by default. */
export async function startAdmin(events: Awaited<ReturnType<typeof openEvents>>, { worker = false } = {}) {
  const running = await startServer(events.app, { worker })
  const between = await inFront?.openFront(running, events.app.config.databaseUrl!)
  const adminUrl = between?.adminUrl ?? running.adminUrl!
  const operator = async (scope: Scope, seconds?: number) => {
    const made = await events.app.db.tx((query) => createOperator(query, { name: `test ${scope}`, scope, seconds }))
    await between?.refresh()
    return made
  }
  const { id, key } = await operator('write')
  async function call(
    method: string,
    path: string,
    body?: unknown,
    given: string | null = key,
  ): Promise<AdminResponse> {
    await between?.refresh()
    const response = await callAt(adminUrl, method, path, body, given)
    // Requests that concern all shards go to the test's only one.
    const isOfAll = between && response.headers.get('x-error-code') === 'concerns_all_shards'
    return isOfAll ? callAt(running.adminUrl!, method, path, body, given) : response
  }
  async function callAt(
    address: string,
    method: string,
    path: string,
    body: unknown,
    given: string | null,
  ): Promise<AdminResponse> {
    const response = await fetch(`${address}/admin/v1${path}`, {
      method,
      headers: {
        ...(given !== null && { authorization: `Bearer ${given}` }),
        ...(body !== undefined && {
          'content-type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
        }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    checkErrorCode('operator', response.status, response.headers.get('x-error-code') ?? undefined)
    return { status: response.status, headers: response.headers, body: await response.json() }
  }
  async function stop(): Promise<void> {
    await running.stop()
    await between?.stop()
  }
  return { url: between?.url ?? running.url, adminUrl, operatorId: id, key, operator, call, stop }
}
