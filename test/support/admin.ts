// The operator's API as a test calls it: a server, a key that may write, and requests with it.
import { startServer } from '../../src/server/server.ts'
import { createOperator, type Scope } from '../../src/tenants/operator-keys.ts'
import { checkErrorCode } from './error-codes.ts'
import type { openEvents } from './events.ts'

export interface AdminAnswer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what tests check.
  body: any
}

/** Serves the app of `events`; `call` speaks with a key that may write, unless another is given. */
export async function startAdmin(events: Awaited<ReturnType<typeof openEvents>>, { worker = false } = {}) {
  const running = await startServer(events.app, { worker })
  const operator = (scope: Scope, seconds?: number) =>
    events.app.db.tx((query) => createOperator(query, { name: `test ${scope}`, scope, seconds }))
  const { id, key } = await operator('write')
  async function call(method: string, path: string, body?: unknown, given: string | null = key): Promise<AdminAnswer> {
    const response = await fetch(`${running.adminUrl}/admin/v1${path}`, {
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
  return { url: running.url, adminUrl: running.adminUrl!, operatorId: id, key, operator, call, stop: running.stop }
}
