// Imports from a service with this API: a server with a shop to copy, a project to copy it into, and the comparison of both.
import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { demoRecords } from '../../../../src/cli/demo/records.ts'
import { createOrganization } from '../../../../src/core/tenants/tenants.ts'
import { type ApiReport, compareApi } from '../../../../src/data/ingest/api/compare.ts'
import { noCustomers } from '../../../../src/data/ingest/api/customers.ts'
import { runApiImport } from '../../../../src/data/ingest/api/run.ts'
import { ApiSource } from '../../../../src/data/ingest/api/source.ts'
import { beginState, takeTurn } from '../../../../src/data/ingest/api/state.ts'
import { importRecords } from '../../../../src/data/ingest/load.ts'
import { releaseTurn } from '../../../../src/data/ingest/turn.ts'
import { instantFromPg } from '../../../../src/lib/time.ts'
import { temporaryFolder } from '../../../support/folder.ts'
import { line } from '../../../support/imports.ts'
import { type Json, type Project, startTestServer, type TestServer } from '../../../support/server.ts'
import { silent } from '../../../support/simulators.ts'
import { until } from '../../../support/time.ts'

export interface Shop {
  server: TestServer
  folder: string
  source: Project & { organizationKey: string }
  /** The addresses of the source's two APIs. */
  from: string
  billingFrom: string
  keyFile: string
  billingKeyFile: string
  stop(): Promise<void>
}

/** A server with the data of so many people in one project: those of the demo, then plain ones. */
export async function openShop(people: number): Promise<Shop> {
  const server = await startTestServer({ RATE_LIMIT: '0' })
  const folder = temporaryFolder()
  const { secret_key: organizationKey } = await createOrganization(server.db, server.app.seal, { id: 'shop' })
  const source = { ...(await server.project('shop')), organizationKey }
  const stream = () => Readable.from(linesOf(people))
  const { rejects } = await importRecords(server.app, { projectId: source.id }, [{ name: 'demo', stream }])
  assert.deepEqual(rejects, [])
  const keyFile = join(folder, 'key')
  const billingKeyFile = join(folder, 'billing-key')
  writeFileSync(keyFile, source.key)
  writeFileSync(billingKeyFile, organizationKey)
  return {
    server,
    folder,
    source,
    from: `${server.url}/public/v1`,
    billingFrom: `${server.url}/shop`,
    keyFile,
    billingKeyFile,
    stop: server.stop,
  }
}

// Two days after the demo's last change, so that no time is ahead of the clock.
const NOW_MS = Date.now() - 2 * 86_400_000

function* linesOf(people: number): Iterable<string> {
  let seen = 0
  for (const record of demoRecords(NOW_MS)) {
    if (record.record === 'profile') seen += 1
    if (seen > people) return
    yield `${JSON.stringify(record)}\n`
  }
  if (seen < people) yield `${JSON.stringify(line.product())}\n`
  for (; seen < people; seen += 1) for (const record of plain(seen)) yield `${JSON.stringify(record)}\n`
}

/** A person with a record of each kind. */
function plain(n: number): object[] {
  const created_at = new Date(NOW_MS - (n % 700) * 86_400_000).toISOString()
  const of = { created_at, profile_id: `pro_plain${n}` }
  const [session_id, external_id] = [`ses_plain${n}`, `plain${n}`]
  return [
    line.profile({ id: of.profile_id, created_at, email: `plain${n}@example.com` }),
    line.session({ ...of, id: session_id, locale: 'en', country: 'ES' }),
    line.reply({ session_id, value: `${n}` }),
    line.reply({ session_id, element: { id: 'other', type: 'Input' }, value: ['a', 'ü'] }),
    line.subscription({ ...of, id: `sub_plain${n}`, session_id }),
    line.transaction({ ...of, id: `trn_plain${n}`, session_id }),
    line.customer({ external_id, profile_id: of.profile_id }),
    line.payment({
      external_id,
      order_id: randomUUID(),
      trx_created_at: created_at,
      psp_transaction_id: `psp_plain${n}`,
    }),
  ]
}

/** A project in its own organization, with the key of the organization. */
export async function openTarget({ server }: Shop, id: string): Promise<Project & { organizationKey: string }> {
  const { secret_key: organizationKey } = await createOrganization(server.db, server.app.seal, { id })
  return { ...(await server.project(id)), organizationKey }
}

/** Imports these lines through the operator's API. */
export async function importLines(server: TestServer, project: string, lines: object[], query = ''): Promise<void> {
  const { status, text } = await server.admin(`/projects/${project}/import${query}`, {
    method: 'POST',
    headers: ['Content-Type', 'application/x-ndjson'],
    body: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
  })
  assert.equal(status, 200, text)
}

/** Every record of a project as the export has it, by kind and id, without these fields. */
export async function recordsOf(
  server: TestServer,
  project: Project,
  without: readonly string[] = [],
): Promise<Map<string, Json>> {
  const records = new Map<string, Json>()
  for await (const [key, data] of exported(server, project, without)) records.set(key, data)
  return records
}

/** All rows of the report of an organization. */
export async function rowsOf(server: TestServer, organization: string, key: string): Promise<Json[]> {
  const rows: Json[] = []
  for (let last_transaction_date = '1970-01-01T00:00:00Z'; ; ) {
    const { body } = await server.call(`/${organization}/v1/transaction_report`, {
      method: 'POST',
      headers: ['service-secret-key', key],
      body: { last_transaction_date, limit: 500 },
    })
    if (body.transactions.length === 0) return rows
    rows.push(...body.transactions)
    last_transaction_date = rows.at(-1).trx_created_at
  }
}

/** Fails unless both projects have the same records and, with `payments`, both organizations the same report. */
export async function checkCopied(
  { server, source }: Shop,
  target: Project & { organizationKey: string },
  { without = [], payments = true }: { without?: readonly string[]; payments?: boolean } = {},
): Promise<number> {
  await untilExported(server, target)
  const [there, here] = [await hashesOf(server, source, without), await hashesOf(server, target, without)]
  const differing = [...new Set([...there.keys(), ...here.keys()])].filter((key) => there.get(key) !== here.get(key))
  for (const key of differing.slice(0, 3))
    assert.deepEqual(await recordOf(server, target, key), await recordOf(server, source, key), key)
  assert.deepEqual(differing, [])
  if (!payments) return there.size
  const rows = await rowsOf(server, source.organizationId, source.organizationKey)
  assert.deepEqual(await rowsOf(server, target.organizationId, target.organizationKey), rows)
  return there.size + rows.length
}

/** The exported records without these fields, one by one: those of a million people do not fit into one string. */
async function* exported(
  server: TestServer,
  { key }: Project,
  without: readonly string[] = [],
): AsyncGenerator<[key: string, data: Json]> {
  const asked = get(`${server.url}/public/v1/export`, { headers: { 'Service-Secret': key } })
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  for await (const text of createInterface(response)) {
    const { record, data } = JSON.parse(text) as { record?: string; data: Json }
    if (record === undefined) continue
    for (const name of without) delete data[name]
    yield [`${record} ${data.id ?? data.session_id}`, data]
  }
}

/** A hash of each record without these fields, by its kind and id. */
async function hashesOf(server: TestServer, project: Project, without: readonly string[]) {
  const hashes = new Map<string, string>()
  for await (const [key, data] of exported(server, project, without))
    hashes.set(key, hash('sha1', JSON.stringify(data), 'base64'))
  return hashes
}

async function recordOf(server: TestServer, project: Project, wanted: string): Promise<Json> {
  for await (const [key, data] of exported(server, project)) if (key === wanted) return data
  return undefined
}

/** Waits until the horizon of the project has passed now: a feed stamps what it writes, and an export ends at the horizon. */
export async function untilExported({ db }: TestServer, project: Project): Promise<void> {
  const [row] = await db.query('select db_clock() as now')
  const now = instantFromPg(row!.now!)
  const horizon = async () =>
    String((await project.get('/profiles', { 'filter[updated_at.from]': now, limit: '1' })).headers['x-sync-horizon'])
  await until('the horizon to pass what was written', async () => (await horizon()) > now)
}

export interface ImportGiven {
  from: string
  billing?: { url: string; key: string }
  key: string
  onRejected?: (line: string) => void
}

/** Runs an import in this process, at any rate and without pauses. */
export async function importApi(server: TestServer, target: Project, given: ImportGiven): Promise<ApiReport> {
  const { app } = server
  const connection = await app.db.connect()
  const { query } = connection
  const signal = new AbortController().signal
  const clock = { ...app.clock, sleep: async () => {} }
  const open = (url: string, headers: Record<string, string>) =>
    new ApiSource({ url, headers, clock, signal, callsPerSecond: 1e6 })
  const name = { organizationId: target.organizationId, projectId: target.id, source: given.from }
  try {
    await takeTurn(query, name)
    const state = await beginState(query, name, { billing: given.billing?.url ?? null, customers: null })
    const importing = {
      app: { ...app, log: silent },
      query,
      source: open(given.from, { 'Service-Secret': given.key }),
      billing: given.billing && open(given.billing.url, { 'service-secret-key': given.billing.key }),
      customers: noCustomers(),
      actor: { kind: 'command line', id: 'test', source: 'test' } as const,
      signal,
      follow: false,
      ...(given.onRejected && { onRejected: given.onRejected }),
    }
    await runApiImport(importing as never, state)
    return await compareApi(query, state)
  } finally {
    await releaseTurn(connection)
  }
}

export interface Between {
  url: string
  /** How many requests came. */
  requests: string[]
  stop(): void
}

export type Responding = (
  request: { method: string; path: string; query: URLSearchParams; body: Json },
  pass: (changed?: { query?: URLSearchParams }) => Promise<{ status: number; body: Json }>,
  response: ServerResponse,
) => Promise<{ status: number; body: unknown; headers?: Record<string, string> } | undefined>

/** A service in front of the server that answers as `answering` says; undefined if that has written the response itself. */
export async function openBetween({ url }: TestServer, answering: Responding): Promise<Between> {
  const requests: string[] = []
  const listener = createServer((incoming, response) => {
    void (async () => {
      const body = await bodyOf(incoming)
      const { pathname, searchParams } = new URL(incoming.url!, 'http://x')
      requests.push(`${incoming.method} ${incoming.url}`)
      const pass = async ({ query = searchParams }: { query?: URLSearchParams } = {}) => {
        const headers = { ...headersOf(incoming) }
        const response = await fetch(`${url}${pathname}${query.size > 0 ? `?${query}` : ''}`, {
          method: incoming.method!,
          headers,
          ...(body !== '' && { body }),
        })
        return { status: response.status, body: await response.json() }
      }
      const request = { method: incoming.method!, path: pathname, query: searchParams, body: body && JSON.parse(body) }
      const answer = await answering(request, pass, response)
      if (!answer) return
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    requests,
    stop() {
      listener.closeAllConnections()
      listener.close()
    },
  }
}

/** The key under the name that the server requires; a service of another name takes it as `Old-Secret` and `old-secret-key`. */
function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const given: Record<string, string> = {}
  if (headers['old-secret']) given['Service-Secret'] = String(headers['old-secret'])
  if (headers['old-secret-key']) given['service-secret-key'] = String(headers['old-secret-key'])
  if (headers['service-secret']) given['Service-Secret'] = String(headers['service-secret'])
  if (headers['service-secret-key']) given['service-secret-key'] = String(headers['service-secret-key'])
  if (headers['content-type']) given['content-type'] = headers['content-type']
  return given
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += piece
  return text
}
