// A client that keeps a copy by windows of the export, and goes on behind its last cursor when a response breaks off.

export interface Copy {
  /** The transactions that it was given, as `id stamp`, since it last began anew. */
  transactions: string[]
  /** The stamp of each session. */
  sessions: Map<string, string>
  /** Sessions that it was given twice with the same stamp. */
  repeated: string[]
  begunAnew: number
  /** Reads one window; false when it has to be requested again. */
  window(): Promise<boolean>
}

interface Line {
  record?: string
  data?: { id: string; updated_at: string }
  cursor?: string
  horizon?: string
}

const START = '2000-01-01T00:00:00.000000Z'
// No line for this long is a broken response.
const SILENCE_MS = 60_000

/** `get` requests a path, and returns undefined when there was no response. */
export function startCopy(get: (path: string, signal: AbortSignal) => Promise<Response | undefined>): Copy {
  let from = START
  let cursor: string | undefined
  const copy: Copy = { transactions: [], sessions: new Map(), repeated: [], begunAnew: 0, window: readWindow }

  function store(lines: readonly Line[]): void {
    for (const { record, data } of lines) {
      const { id, updated_at: stamp } = data!
      if (record === 'transaction') copy.transactions.push(`${id} ${stamp}`)
      if (record !== 'session') continue
      if (copy.sessions.get(id) === stamp) copy.repeated.push(id)
      copy.sessions.set(id, stamp)
    }
  }

  async function readWindow(): Promise<boolean> {
    const silence = new AbortController()
    let timer = setTimeout(() => silence.abort(), SILENCE_MS)
    try {
      const query = new URLSearchParams({ from, ...(cursor !== undefined && { cursor }) })
      const response = await get(`/public/v1/export?${query}`, silence.signal)
      if (response?.status !== 200) return false
      if (response.headers.has('x-void-from')) return beginAnew(response)
      // Lines behind the last cursor come again when the response breaks off.
      let pending: Line[] = []
      for await (const line of linesOf(response)) {
        clearTimeout(timer)
        timer = setTimeout(() => silence.abort(), SILENCE_MS)
        if (line.record !== undefined) pending.push(line)
        else {
          store(pending)
          pending = []
          cursor = line.cursor
          if (line.horizon === undefined) continue
          from = line.horizon
          return true
        }
      }
      return false
    } catch {
      return false
    } finally {
      clearTimeout(timer)
    }
  }

  async function beginAnew(response: Response): Promise<boolean> {
    await response.body?.cancel()
    Object.assign(copy, { transactions: [], sessions: new Map(), repeated: [], begunAnew: copy.begunAnew + 1 })
    from = START
    cursor = undefined
    return true
  }

  return copy
}

async function* linesOf(response: Response): AsyncIterable<Line> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body!) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) yield JSON.parse(line)
  }
}
