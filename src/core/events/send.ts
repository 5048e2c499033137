// One attempt: posts a body to a checked address within a deadline, and keeps the beginning of the response.
import { promises as dns, type LookupAddress } from 'node:dns'
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from './address.ts'

/** The outcome of an attempt: the response's status, or why there is none. */
export interface Outcome {
  status: number | undefined
  error: string | undefined
  /** The beginning of the response's body, as text that the database can store. */
  answer: string | undefined
  retryAfter: string | undefined
}

/** Resolves a host name to its addresses. */
export type Resolve = (host: string) => Promise<LookupAddress[]>

export interface SendOptions {
  /** Whether private and loopback addresses may be reached. */
  allowPrivate: boolean
  resolve: Resolve
  deadlineMs: number
  signal?: AbortSignal
}

const KEPT_BYTES = 2048

/** Posts `body`. Never throws: every failure is an outcome. Redirects are not followed. */
export async function send(
  url: string,
  headers: Record<string, string>,
  body: string,
  options: SendOptions,
): Promise<Outcome> {
  const stop = [AbortSignal.timeout(options.deadlineMs), ...(options.signal ? [options.signal] : [])]
  const signal = AbortSignal.any(stop)
  try {
    return await post(new URL(url), headers, body, options, signal)
  } catch (error) {
    return { status: undefined, error: reason(error, options), answer: undefined, retryAfter: undefined }
  }
}

interface Resolving {
  allowPrivate: boolean
  /** The addresses of the name servers; those of the system if left out. */
  servers?: () => string[]
}

/**
 * Resolves names by the system, hosts file included, where private addresses are allowed. Otherwise by the name servers
 * alone: the system's look-ups share a few threads, so that a few unanswered names would delay all others.
 */
export function resolverFor({ allowPrivate, servers }: Resolving): Resolve {
  if (allowPrivate) return (host) => dns.lookup(host, { all: true })
  let resolver = openResolver(servers)
  return async (host) => {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const found = answers.flatMap((answer, n) =>
      answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family: n === 0 ? 4 : 6 })) : [],
    )
    const [first] = answers
    if (found.length === 0 && first.status === 'rejected') {
      // A resolver keeps the name servers that the system had when it was made.
      resolver = openResolver(servers)
      throw first.reason
    }
    return found
  }
}

function openResolver(servers: Resolving['servers']): dns.Resolver {
  const resolver = new dns.Resolver({ timeout: 2000, tries: 2 })
  if (servers) resolver.setServers(servers())
  return resolver
}

class RefusedAddress extends Error {}

async function post(
  url: URL,
  headers: Record<string, string>,
  body: string,
  options: SendOptions,
  signal: AbortSignal,
): Promise<Outcome> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const allowed = (address: string) => options.allowPrivate || isPublicAddress(address)
  // A literal address needs no look-up.
  if (isIP(host) && !allowed(host)) throw new RefusedAddress()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const about: RequestOptions = {
      method: 'POST',
      // A new connection for each attempt: a kept-alive one may be dead already, which would count as a failure.
      agent: false,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      lookup: checkedLookup(options.resolve, allowed),
      signal,
    }
    const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, about, resolve)
    request.on('error', reject)
    // A response that switches protocols is neither a `response` nor an `error` event.
    request.on('close', () => reject(Object.assign(new Error('no answer'), { code: 'ECONNRESET' })))
    request.end(body)
  })
  return {
    status: response.statusCode!,
    error: undefined,
    answer: await beginning(response, signal),
    retryAfter: response.headers['retry-after'],
  }
}

/** Connects to the addresses that were checked, so that a name that resolves differently next time gains nothing. */
function checkedLookup(resolve: Resolve, allowed: (address: string) => boolean): LookupFunction {
  return (host, { all }, callback) => {
    resolve(host).then(
      (found) => {
        const good = found.filter(({ address }) => allowed(address))
        if (good.length === 0) callback(new RefusedAddress(), '', 0)
        else if (all) callback(null, good)
        else callback(null, good[0]!.address, good[0]!.family)
      },
      (error) => callback(error, '', 0),
    )
  }
}

/** The first bytes of a body; the rest is not read. A body that breaks off or stalls is kept as far as it came. */
async function beginning(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  const stop = () => response.destroy()
  signal.addEventListener('abort', stop)
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= KEPT_BYTES) break
    }
  } catch {
    // The status has been read, which decides the outcome.
  } finally {
    signal.removeEventListener('abort', stop)
    response.destroy()
  }
  // Invalid or cut characters become replacement characters; PostgreSQL cannot store U+0000.
  return Buffer.concat(chunks).subarray(0, KEPT_BYTES).toString('utf8').replaceAll('\u0000', '\ufffd')
}

const SENTENCES: Record<string, string> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection broke before a response.',
  EPIPE: 'The connection broke before a response.',
  EPROTO: 'The TLS connection could not be made.',
  ENOTFOUND: 'The host name is unknown.',
  ENODATA: 'The host name has no address.',
  EAI_AGAIN: 'The name server did not respond.',
  ETIMEOUT: 'The name server did not respond.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The host cannot be reached.',
  ETIMEDOUT: 'The connection could not be made in time.',
}

function reason(error: unknown, { deadlineMs, signal }: SendOptions): string {
  if (error instanceof RefusedAddress)
    return 'The host is not at a public address (WEBHOOK_ALLOW_PRIVATE=true allows others).'
  const { name, code, message, syscall } = error as NodeJS.ErrnoException
  if (signal?.aborted) return 'Tundish was stopped.'
  if (name === 'AbortError' || name === 'TimeoutError') return `There was no response within ${deadlineMs / 1000} s.`
  if (code === 'ECONNREFUSED' && syscall?.startsWith('query')) return SENTENCES.ETIMEOUT!
  // Errors of certificates and broken HTTP have many codes, which are short and contain no data.
  return (
    SENTENCES[code ?? ''] ?? (code ? `The request failed: ${code}.` : `The request failed: ${message.slice(0, 200)}`)
  )
}
