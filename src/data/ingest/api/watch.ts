// Watches a response of another service: it is given up when nothing arrives for a while.

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
