// The real server in this process, on a port and its own fresh database, and requests to it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { type App, openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createOperator } from '../../src/core/tenants/operator-keys.ts'
import { createOrganization, createProject } from '../../src/core/tenants/tenants.ts'
import { openLog } from '../../src/lib/log.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { type ServerOptions, startServer } from '../../src/server/listeners/server.ts'
import { inFront } from '../shards/in-front.ts'
import { checkDescribed } from './described.ts'
import { temporaryFolder } from './folder.ts'
import { freshDatabase } from './postgres.ts'

export interface ApiResponse {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The body as JSON; undefined if there is none. */
  body: Json
}

// The test knows the shape of a response; a wrong property is undefined.
// biome-ignore lint/suspicious/noExplicitAny: the shape is what tests check.
export type Json = any

export interface Call {
  /** Sent as `Service-Secret`. */
  key?: string
  method?: string
  /** An object is sent as JSON, anything else unchanged. */
  body?: object | string | Buffer
  /** Names and values alternately, sent in this case and order. */
  headers?: string[]
}

export interface Project {
  id: string
  organizationId: string
  key: string
  /** The data API with this project's key: `get('/funnels', { limit: '5' })`. */
  get(path: string, query?: Record<string, string>): Promise<ApiResponse>
  post(path: string, body: object): Promise<ApiResponse>
}

export interface TestServer {
  app: App
  db: Db
  url: string
  adminUrl: string
  ledger: string
  /** The environment for another program on the same database. */
  env: Record<string, string>
  /** The lines of the log so far. */
  logLines(): string[]
  /** A request to the listener; the path is sent unchanged. */
  call(path: string, call?: Call): Promise<ApiResponse>
  /** A call to the data API. */
  api(path: string, call?: Call): Promise<ApiResponse>
  /** A call to the operator's API, with a key of the scope `write`. */
  admin(path: string, call?: Omit<Call, 'key'>): Promise<ApiResponse>
  /** A new project, by default in its own organization. */
  project(organizationId?: string): Promise<Project>
  stop(): Promise<void>
}

/** Settings with a data folder and a fresh database, unless `env` has one; `env` may contain further settings. */
export async function freshSettings(env: Record<string, string>) {
  const database = env.DATABASE_URL ? undefined : await freshDatabase()
  const dataDir = temporaryFolder()
  const settings: Record<string, string> & { DATABASE_URL: string } = {
    DATABASE_URL: database?.url ?? '',
    DATA_DIR: dataDir,
    MASTER_KEY: randomBytes(32).toString('base64'),
    PORT: '0',
    ADMIN_PORT: '0',
    ...inFront?.BEHIND,
    ...env,
  }
  return {
    settings,
    dataDir,
    remove: async () => database?.drop(),
  }
}

/** Both listeners of an app. */
export async function serve(app: App, options: ServerOptions) {
  const running = await startServer(app, options)
  const between = await inFront?.openFront(running, app.config.databaseUrl!)
  return {
    url: between?.url ?? running.url,
    adminUrl: between?.adminUrl ?? running.adminUrl!,
    /** Without a proxy in front of it. */
    ownAdminUrl: running.adminUrl!,
    refresh: async () => between?.refresh(),
    async stop() {
      await running.stop()
      await between?.stop()
    },
  }
}

/** Serves the database of `freshSettings`, wrapped by `view`. */
export async function startTestServer(
  env: Record<string, string> = {},
  options: ServerOptions = {},
  view = (db: Db) => db,
): Promise<TestServer> {
  const { settings, remove } = await freshSettings(env)
  const lines: string[] = []
  const log = openLog('info', { write: (line) => lines.push(line) })
  const app = await openApp(readConfig(settings), { log })
  const { url, adminUrl, refresh, stop } = await serve({ ...app, db: view(app.db) }, options)
  const agent = new Agent({ keepAlive: true })
  const ask = async (listener: 'public' | 'operator', path: string, given: Call) => {
    await refresh()
    const address = listener === 'public' ? url : adminUrl
    const response = await send(agent, address, path, given)
    const code = response.headers['x-error-code'] as string | undefined
    await checkDescribed(listener, address, [given.method ?? 'GET', path], { status: response.status, code })
    return response
  }
  const call = (path: string, given: Call = {}) => ask('public', path, given)
  const api = (path: string, given?: Call) => call(`/public/v1${path}`, given)
  let operatorKey: Promise<{ key: string }> | undefined
  return {
    app,
    db: app.db,
    url,
    adminUrl,
    ledger: app.config.erasureLedger,
    env: settings,
    logLines: () => lines,
    call,
    api,
    async admin(path, given = {}) {
      operatorKey ??= app.db.tx((query) => createOperator(query, { name: 'test', scope: 'write' }))
      const headers = ['Authorization', `Bearer ${(await operatorKey).key}`, ...(given.headers ?? [])]
      return ask('operator', `/admin/v1${path}`, { ...given, headers })
    },
    project: (organizationId) => makeProject(app, api, organizationId),
    async stop() {
      agent.destroy()
      await stop()
      await app.close()
      await remove()
    },
  }
}

/** The metrics of a server, from the operator's listener. */
export const scrape = async ({ adminUrl }: { adminUrl: string }) => (await fetch(`${adminUrl}/metrics`)).text()

let made = 0

async function makeProject(app: App, api: TestServer['api'], organizationId?: string): Promise<Project> {
  const organization = organizationId ?? `org-${++made}`
  if (!organizationId) await createOrganization(app.db, app.seal, { id: organization })
  const { id, secret_key: key } = await createProject(app.db, app.seal, { id: `project-${++made}`, organization })
  return {
    id,
    organizationId: organization,
    key,
    get: (path, query) => api(query ? `${path}?${new URLSearchParams(query)}` : path, { key }),
    post: (path, body) => api(path, { key, method: 'POST', body }),
  }
}

/** Sends one request by Node's own client, which keeps the case of header names. */
export function send(agent: Agent, url: string, path: string, { key, method, body, headers = [] }: Call) {
  const { hostname, port } = new URL(url)
  const json = typeof body === 'object' && !Buffer.isBuffer(body)
  const bytes = json ? Buffer.from(JSON.stringify(body)) : body === undefined ? undefined : Buffer.from(body)
  const raw = ['Host', `${hostname}:${port}`, ...headers]
  if (key !== undefined) raw.push('Service-Secret', key)
  if (json) raw.push('Content-Type', 'application/json')
  if (bytes) raw.push('Content-Length', String(bytes.length))
  return new Promise<ApiResponse>((resolve, reject) => {
    const sent = request({ agent, hostname, port, path, method: method ?? 'GET', headers: raw }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const isJson = response.headers['content-type']?.startsWith('application/json') && text !== ''
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          text,
          body: isJson ? JSON.parse(text) : undefined,
        })
      })
    })
    sent.on('error', reject)
    sent.end(bytes)
  })
}

/** Sends these bytes on a new connection and returns everything received until it ends. */
export function sendBytes(url: string, bytes: string | Buffer): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let response = ''
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes))
    socket.setTimeout(30_000, () => socket.destroy(new Error('The server neither ended the connection nor answered.')))
    socket.on('data', (chunk) => {
      response += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(response))
  })
}

/** The body of a response whose status must be 200. */
export async function ok(response: Promise<{ status: number; text?: string; body?: Json }>): Promise<Json> {
  const { status, text, body } = await response
  assert.equal(status, 200, text ?? JSON.stringify(body))
  return body
}

export const times = <T>(n: number, make: (n: number) => T): T[] =>
  Array.from({ length: n }, (_none, index) => make(index))

/** The number of responses with a status. */
export const countOf = (responses: ApiResponse[], status: number) =>
  responses.filter((response) => response.status === status).length
