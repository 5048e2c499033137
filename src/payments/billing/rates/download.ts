// Downloads a file of exchange rates: bounded in size and time, without redirects, and not again if it has not changed.
import { Refusal } from '../../../lib/errors.ts'
import { MAX_BYTES } from './rate-files.ts'

export interface Downloaded {
  /** Undefined: it has not changed. */
  bytes: Buffer | undefined
  etag: string | null
  lastModified: string | null
}

const DEADLINE_MS = 30_000

/** Throws a `Refusal` that names the cause, and neither the path nor the query of the URL, which may have a key. */
export async function download(
  url: string,
  known: { etag: string | null; lastModified: string | null },
  signal?: AbortSignal,
): Promise<Downloaded> {
  const headers = {
    'user-agent': 'Tundish-Rates/1',
    ...(known.etag !== null && { 'if-none-match': known.etag }),
    ...(known.lastModified !== null && { 'if-modified-since': known.lastModified }),
  }
  const stop = AbortSignal.any([AbortSignal.timeout(DEADLINE_MS), ...(signal ? [signal] : [])])
  try {
    // A redirect could lead into the own network.
    const response = await fetch(url, { headers, redirect: 'manual', signal: stop })
    if (response.status === 304) return { bytes: undefined, ...known }
    if (response.status !== 200) throw new Refusal(`The response has the status ${response.status}.`)
    const bytes = await read(response)
    return { bytes, etag: response.headers.get('etag'), lastModified: response.headers.get('last-modified') }
  } catch (error) {
    if (error instanceof Refusal) throw error
    const { name, cause } = error as Error & { cause?: { code?: string } }
    if (name === 'TimeoutError') throw new Refusal(`There was no whole response within ${DEADLINE_MS / 1000} s.`)
    throw new Refusal(`The request failed (${cause?.code ?? name}).`)
  }
}

async function read(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new Refusal(`The response exceeds ${MAX_BYTES / 1024 / 1024} MiB.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
