// The doors of the two listeners, the operations behind them as the descriptions tell them, and calls with any key.
import { Agent } from 'node:http'
import { type Answer, type Json, send, type TestServer } from './server.ts'

export interface Door {
  name: 'open' | 'data' | 'billing' | 'operator'
  /** Where its key stands. */
  header: string
  listener: 'public' | 'operator'
}

export interface MatrixOperation {
  id: string
  method: string
  path: string
  door: Door
}

const OPEN: Door = { name: 'open', header: '', listener: 'public' }

/** By the name of the security scheme. */
const DOORS: Record<string, Door> = {
  projectKey: { name: 'data', header: 'Service-Secret', listener: 'public' },
  organizationKey: { name: 'billing', header: 'service-secret-key', listener: 'public' },
  operatorKey: { name: 'operator', header: 'Authorization', listener: 'operator' },
}

/** Every operation of both documents. Fails unless each says which one key opens it, or that none is needed. */
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
        const door = schemes?.length === 0 ? { ...OPEN, listener } : DOORS[schemes?.[0] ?? '']
        if (!door || door.listener !== listener || schemes!.length > 1)
          throw new Error(`${id} has to name the one key that opens it.`)
        found.push({ id, method: method.toUpperCase(), path, door })
      }
    }
  }
  return found
}

interface DoorCall {
  door: Door
  method: string
  path: string
  key?: string | undefined
  /** Another header than the door's. */
  header?: string
  /** An object is sent as JSON, a text as lines of it. */
  body?: object | string | undefined
  otherListener?: boolean
}

/** Sends requests through doors. */
export function callerOf({ url, adminUrl }: TestServer) {
  const agent = new Agent()
  return ({
    door,
    method,
    path,
    key,
    header = door.header,
    body,
    otherListener = false,
  }: DoorCall): Promise<Answer> => {
    const headers: string[] = []
    if (key !== undefined) headers.push(header, header === 'Authorization' ? `Bearer ${key}` : key)
    if (typeof body === 'string') headers.push('Content-Type', 'application/x-ndjson')
    const isPublic = (door.listener === 'public') !== otherListener
    return send(agent, isPublic ? url : adminUrl, path, { method, headers, body: method === 'HEAD' ? undefined : body })
  }
}

/** The paths that a listener serves and does not describe: the description itself and pages, which have no data of a tenant. */
export const UNDESCRIBED = [
  // Any path that is not served: 404.
  '*',
  '/*',
  '/',
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
