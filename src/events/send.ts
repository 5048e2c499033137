// One attempt: posts a body to an endpoint within a deadline, at an address that was checked, and keeps little of the answer.
import { promises as dns, type LookupAddress } from 'node:dns'
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from './address.ts'

/** What came of an attempt: an answer with its status, or the reason why there is none. */
export interface Outcome {
  status: number | undefined
  error: string | undefined
  /** The beginning of the answer's body, as text that the database takes. */
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

/** Posts `body`. Never throws: whatever happens is an outcome. Redirects are answers like any other. */
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

/**
 * Asks the system, hosts file included, where private addresses are allowed. Else the name servers alone, for the
 * system's look-ups share a few threads: a handful of names that nobody answers for would hold up all the others.
 */
export function resolverFor({ allowPrivate }: { allowPrivate: boolean }): Resolve {
  if (allowPrivate) return (host) => dns.lookup(host, { all: true })
  const resolver = new dns.Resolver({ timeout: 2000, tries: 2 })
  return async (host) => {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const found = answers.flatMap((answer, n) =>
      answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family: n === 0 ? 4 : 6 })) : [],
    )
    const [first] = answers
    if (found.length === 0 && first.status === 'rejected') throw first.reason
    return found
  }
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
  // A literal address is connected to without a look-up.
  if (isIP(host) && !allowed(host)) throw new RefusedAddress()
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const about: RequestOptions = {
      method: 'POST',
      // A connection of its own: one that was kept may have died unnoticed, and would look like a failure.
      agent: false,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      lookup: checkedLookup(options.resolve, allowed),
      signal,
    }
    const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, about, resolve)
    request.on('error', reject)
    // An answer that changes to another protocol is neither a response nor an error.
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

/** The connection goes to the very addresses that were checked: a name that answers differently next time gains nothing. */
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

/** The first bytes of a body; the rest is not read. A body that breaks off or never ends is as good as it got. */
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
    // The status has been read; that is what counts.
  } finally {
    signal.removeEventListener('abort', stop)
    response.destroy()
  }
  // A character that was cut, or never was one, becomes a replacement character; PostgreSQL takes no U+0000.
  return Buffer.concat(chunks).subarray(0, KEPT_BYTES).toString('utf8').replaceAll('\u0000', '\ufffd')
}

const SENTENCES: Record<string, string> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection broke before an answer.',
  EPIPE: 'The connection broke before an answer.',
  ENOTFOUND: 'The host name is unknown.',
  ENODATA: 'The host name has no address.',
  EAI_AGAIN: 'The name server did not answer.',
  ETIMEOUT: 'The name server did not answer.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The host cannot be reached.',
  ETIMEDOUT: 'The connection could not be made in time.',
}

function reason(error: unknown, { deadlineMs, signal }: SendOptions): string {
  if (error instanceof RefusedAddress)
    return 'The host is not at a public address (WEBHOOK_ALLOW_PRIVATE=true allows others).'
  const { name, code, message } = error as NodeJS.ErrnoException
  if (signal?.aborted) return 'Tundish was stopped.'
  if (name === 'AbortError' || name === 'TimeoutError') return `There was no answer within ${deadlineMs / 1000} s.`
  // Certificates and broken HTTP have many codes; theirs are short and tell nothing but themselves.
  return (
    SENTENCES[code ?? ''] ?? (code ? `The request failed: ${code}.` : `The request failed: ${message.slice(0, 200)}`)
  )
}
