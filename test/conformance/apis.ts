// The APIs of both listeners with their keys, the operations in their descriptions, and requests with any key.
import { Agent, type OutgoingHttpHeaders, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiResponse, type Json, send, type TestServer } from '../support/server.ts'

export interface Api {
  name: 'open' | 'data' | 'billing' | 'operator'
  /** The header with its key. */
  header: string
  listener: 'public' | 'operator'
}

export interface MatrixOperation {
  id: string
  method: string
  path: string
  api: Api
}

const OPEN: Api = { name: 'open', header: '', listener: 'public' }

/** The APIs by the name of their security scheme. */
const APIS: Record<string, Api> = {
  projectKey: { name: 'data', header: 'Service-Secret', listener: 'public' },
  organizationKey: { name: 'billing', header: 'service-secret-key', listener: 'public' },
  operatorKey: { name: 'operator', header: 'Authorization', listener: 'operator' },
}

/** Every operation of both documents. Throws unless each declares exactly one kind of key, or none. */
export async function operationsOf({ url, adminUrl }: TestServer): Promise<MatrixOperation[]> {
  const found: MatrixOperation[] = []
  for (const [listener, at] of [
    ['public', url],
    ['operator', adminUrl],
  ] as const) {
    const document = (await (await fetch(`${at}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, Json>>
    }
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, { operationId: id, security }] of Object.entries(methods)) {
        const schemes = (security as object[] | undefined)?.flatMap((one) => Object.keys(one))
        const api = schemes?.length === 0 ? { ...OPEN, listener } : APIS[schemes?.[0] ?? '']
        if (!api || api.listener !== listener || schemes!.length > 1)
          throw new Error(`${id} must declare exactly one kind of key.`)
        found.push({ id, method: method.toUpperCase(), path, api })
      }
    }
  }
  return found
}

interface ApiCall {
  api: Api
  method: string
  path: string
  key?: string | undefined
  /** A header in place of the API's. */
  header?: string
  /** An object is sent as JSON, a text as JSON lines. */
  body?: object | string | undefined
  otherListener?: boolean
}

/** Returns a function that sends requests to any of the APIs. */
export function callerOf({ url, adminUrl }: TestServer) {
  const agent = new Agent()
  return ({
    api,
    method,
    path,
    key,
    header = api.header,
    body,
    otherListener = false,
  }: ApiCall): Promise<ApiResponse> => {
    const headers: string[] = []
    if (key !== undefined) headers.push(header, header === 'Authorization' ? `Bearer ${key}` : key)
    if (typeof body === 'string') headers.push('Content-Type', 'application/x-ndjson')
    const isPublic = (api.listener === 'public') !== otherListener
    return send(agent, isPublic ? url : adminUrl, path, { method, headers, body: method === 'HEAD' ? undefined : body })
  }
}

/** The paths that a listener serves without describing them: the description and pages, which contain no data of a tenant. */
export const UNDESCRIBED = [
  // Any path that is not served: 404.
  '*',
  '/*',
  '/',
  '/docs.md',
  '/llms.txt',
  '/favicon.ico',
  '/favicon.svg',
  '/openapi.json',
  '/docs',
  '/docs/',
  '/docs/reference.js',
  '/docs/pages.css',
  '/docs/guides',
  '/docs/guides/',
  '/docs/guides/*',
]

/** The paths of Fastify's tree of routes. */
export function servedPaths(tree: string): string[] {
  const parts: string[] = []
  const paths: string[] = []
  for (const line of tree.split('\n').filter(Boolean)) {
    const [, indent, part, methods] = /^([│ ]*)[├└]── (\S*)(?: \((.+)\))?/.exec(line) ?? []
    parts.splice(indent!.length / 4, parts.length, part!)
    if (methods) paths.push(parts.join(''))
  }
  return paths
}

// Longer than a key that was looked up is trusted, because a busy server reads the headers later.
const TRUSTED_MS = 3_000

/** Sends the headers and the first part of a body, and the rest after `revoke`, when the key is no longer trusted. Returns the status. */
export async function sendWhileRevoked(
  url: string,
  headers: OutgoingHttpHeaders,
  [first, rest]: readonly [string, string],
  revoke: () => Promise<unknown>,
): Promise<number> {
  const sent = request(url, { method: 'POST', headers: { ...headers, 'Content-Length': first.length + rest.length } })
  const status = new Promise<number>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => resolve(response.resume().statusCode!))
  })
  await new Promise((resolve) => sent.write(first, resolve))
  await sleep(TRUSTED_MS)
  await revoke()
  sent.end(rest)
  return status
}
