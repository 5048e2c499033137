// JSON over kept-alive HTTP connections to one provider; everything that can go wrong on the way is `ProviderTrouble`.
import http from 'node:http'
import { ProviderTrouble } from './provider.ts'

export interface Answer {
  status: number
  body: unknown
}

export interface Question {
  method: 'GET' | 'POST'
  path: string
  body?: object
  headers?: Record<string, string>
}

// An answer about one charge is some 2 KB; more than this is not an answer.
const maxAnswerBytes = 256 * 1024

export class Transport {
  readonly #address: () => string
  readonly #agent: http.Agent

  /** @param address asked before each call: the provider may move */
  constructor(address: () => string, maxSockets: number) {
    this.#address = address
    this.#agent = new http.Agent({ keepAlive: true, maxSockets, maxFreeSockets: maxSockets })
  }

  async ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const response = await this.#send(question, signal)
    const text = await readText(response, signal)
    try {
      return { status: response.statusCode ?? 0, body: JSON.parse(text) }
    } catch {
      throw new ProviderTrouble(`answered ${response.statusCode} with something that is not JSON`)
    }
  }

  /** The lines of a long answer, as they come. */
  async *lines(path: string, signal: AbortSignal): AsyncGenerator<string> {
    const response = await this.#send({ method: 'GET', path }, signal)
    try {
      if (response.statusCode !== 200) throw new ProviderTrouble(`answered ${response.statusCode}`)
      let rest = ''
      for await (const text of response.setEncoding('utf8') as AsyncIterable<string>) {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        yield* lines
      }
      yield rest
    } catch (error) {
      throw isErrno(error) ? broken(error, signal) : error
    } finally {
      response.destroy()
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #send({ method, path, body, headers }: Question, signal: AbortSignal): Promise<http.IncomingMessage> {
    const payload = body && JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const request = http.request(new URL(path, this.#address()), {
        method,
        agent: this.#agent,
        headers: {
          ...headers,
          ...(payload && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
        },
      })
      const stop = () => request.destroy()
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      request.on('response', resolve)
      request.on('error', (error) => reject(broken(error, signal)))
      request.on('close', () => {
        signal.removeEventListener('abort', stop)
        // Neither a response nor an error came: an answer that changes to another protocol.
        reject(new ProviderTrouble('the connection ended without an answer'))
      })
      request.end(payload)
    })
  }
}

async function readText(response: http.IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxAnswerBytes) throw new ProviderTrouble(`answered more than ${maxAnswerBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw isErrno(error) ? broken(error, signal) : error
  }
  return Buffer.concat(chunks).toString('utf8')
}

function broken(error: NodeJS.ErrnoException, signal: AbortSignal): ProviderTrouble {
  if (signal.reason instanceof ProviderTrouble) return signal.reason
  return new ProviderTrouble(`the connection broke${error.code ? ` (${error.code})` : ''}`)
}

/** What sockets and the HTTP parser throw carries a code; a bug of ours usually does not. */
function isErrno(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error
}
