// Reads the body of a response of another service, and gives it up when nothing arrives for a while.
import { readExact } from '../../../lib/json/exact.ts'

// How long a response, or the next part of a streamed one, may take.
export const TIMEOUT_MS = 60_000

interface Watch {
  signal: AbortSignal
  pause(): void
  restart(): void
  end(): void
}

/** Aborts when nothing arrived for a while, or with the outer signal. */
export function openWatch(outer: AbortSignal): Watch {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const forward = () => controller.abort(outer.reason)
  outer.addEventListener('abort', forward)
  if (outer.aborted) forward()
  const watch = {
    signal: controller.signal,
    pause: () => clearTimeout(timer),
    restart() {
      clearTimeout(timer)
      timer = setTimeout(() => controller.abort(), TIMEOUT_MS)
    },
    end() {
      clearTimeout(timer)
      outer.removeEventListener('abort', forward)
    },
  }
  watch.restart()
  return watch
}

/** The bytes of the body; each piece restarts the watch. */
export async function* piecesOf(response: globalThis.Response, watch: Watch): AsyncGenerator<Buffer> {
  if (!response.body) return
  for await (const chunk of response.body) {
    watch.restart()
    yield Buffer.from(chunk)
  }
}

/** The JSON of the body; undefined if it is none. */
export function bodyOf(bytes: Buffer): unknown {
  try {
    return readExact(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** An HTML page with status 200 is that of a dashboard, or of a proxy that asks for a login. */
export function notJson(headers: Headers): string {
  const isPage = headers.get('content-type')?.startsWith('text/html')
  return `returned a body that is not complete JSON${isPage ? ', but an HTML page: check the address' : ''}`
}
