// The operator's API: a server, a key with the scope `write`, and requests with it.
import { after } from 'node:test'
import { createOperator, type Scope } from '../../src/core/tenants/operator-keys.ts'
import { checkDescribed } from './described.ts'
import { openEvents } from './events.ts'
import { type Json, serve } from './server.ts'

export interface AdminResponse {
  status: number
  headers: Headers
  body: Json
}

/** Serves the app of `events`; `call` uses a key with the scope `write` by default. */
export async function startAdmin({ app }: Awaited<ReturnType<typeof openEvents>>) {
  const { url, adminUrl, ownAdminUrl, refresh, stop } = await serve(app, { worker: false })
  const operator = async (scope: Scope, seconds?: number) => {
    const made = await app.db.tx((query) => createOperator(query, { name: `test ${scope}`, scope, seconds }))
    await refresh()
    return made
  }
  const { id, key } = await operator('write')
  async function call(method: string, path: string, body?: unknown, given: string | null = key) {
    await refresh()
    const response = await callAt(adminUrl, method, path, body, given)
    // Requests that concern all shards go to the test's only one.
    const isOfAll = adminUrl !== ownAdminUrl && response.headers.get('x-error-code') === 'concerns_all_shards'
    return isOfAll ? callAt(ownAdminUrl, method, path, body, given) : response
  }
  return { url, adminUrl, operatorId: id, key, operator, call, stop }
}

/** For the tests of a file: an app with a project, and its operator's API. */
export async function openAdmin() {
  const events = await openEvents()
  const admin = await startAdmin(events)
  after(async () => {
    await admin.stop()
    await events.close()
  })
  return { events, admin }
}

async function callAt(
  address: string,
  method: string,
  path: string,
  body: unknown,
  key: string | null,
): Promise<AdminResponse> {
  const isLines = typeof body === 'string'
  const target = `/admin/v1${path}`
  const response = await fetch(`${address}${target}`, {
    method,
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': isLines ? 'application/x-ndjson' : 'application/json' }),
    },
    ...(body !== undefined && { body: isLines ? body : JSON.stringify(body) }),
  })
  const { status, headers } = response
  await checkDescribed('operator', address, [method, target], {
    status,
    code: headers.get('x-error-code') ?? undefined,
  })
  return { status, headers, body: await response.json() }
}
