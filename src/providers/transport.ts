// Calls to one provider over kept-alive HTTP or HTTPS connections, with JSON responses; every failure is a `ProviderTrouble`.
import http from 'node:http'
import https from 'node:https'
import { ProviderTrouble } from './provider.ts'

export interface Answer {
  status: number
  body: unknown
}

export interface Question {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  body?: object
  /** A form-encoded body, in place of `body`. */
  form?: string
  headers?: Record<string, string>
  /** A response about one charge is some 2 KB; anything larger is refused. */
  maxAnswerBytes?: number
}

const defaultMaxAnswerBytes = 256 * 1024

/** No connection was made, so the provider has not seen the call. */
export class NotSent extends ProviderTrouble {}

// Errors of name resolution, of connecting and of the TLS handshake: before the first byte of the call.
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ERR_TLS_CERT_ALTNAME_INVALID|CERT_\w+|UNABLE_TO_\w+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+)$/

export class Transport {
  readonly #address: () => string
  readonly #agents: { 'http:': http.Agent; 'https:': https.Agent }

  /** @param address asked before each call: the provider may move */
  constructor(address: () => string, maxSockets: number) {
    this.#address = address
    const kept = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets }
    this.#agents = { 'http:': new http.Agent(kept), 'https:': new https.Agent(kept) }
  }

  async ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const response = await this.#send(question, signal)
    const text = await readText(response, question.maxAnswerBytes ?? defaultMaxAnswerBytes, signal)
    try {
      return { status: response.statusCode ?? 0, body: JSON.parse(text) }
    } catch {
      throw new ProviderTrouble(`answered ${response.statusCode} with something that is not JSON`)
    }
  }

  /** The lines of a long response, as they arrive. */
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
    this.#agents['http:'].destroy()
    this.#agents['https:'].destroy()
  }

  #send(question: Question, signal: AbortSignal): Promise<http.IncomingMessage> {
    const payload = question.form ?? (question.body && JSON.stringify(question.body))
    return new Promise((resolve, reject) => {
      const request = this.#open(question, payload)
      const stop = () => request.destroy()
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      let isAnswered = false
      request.on('response', (response) => {
        isAnswered = true
        resolve(response)
      })
      request.on('error', (error) => reject(broken(error, signal)))
      request.on('close', () => {
        signal.removeEventListener('abort', stop)
        // Neither a response nor an error came: an answer that changes to another protocol. (An error is not made in vain:
        // its stack costs as much as a hundredth of a charge.)
        if (!isAnswered) reject(new ProviderTrouble('the connection ended without an answer'))
      })
      request.end(payload)
    })
  }

  #open({ method, path, form, headers }: Question, payload: string | undefined): http.ClientRequest {
    const url = new URL(path, this.#address())
    const type = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded'
    const isSecure = url.protocol === 'https:'
    return (isSecure ? https : http).request(url, {
      method,
      agent: this.#agents[isSecure ? 'https:' : 'http:'],
      headers: {
        ...headers,
        ...(payload !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(payload) }),
      },
    })
  }
}

/** The fields of a value that should be an object; {} of anything else. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

async function readText(response: http.IncomingMessage, maxAnswerBytes: number, signal: AbortSignal): Promise<string> {
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
  if (error.code !== undefined && NOT_SENT.test(error.code))
    return new NotSent(`no connection was made (${error.code})`)
  return new ProviderTrouble(`the connection broke${error.code ? ` (${error.code})` : ''}`)
}

/** Errors of sockets and the HTTP parser have a code; those of bugs usually have none. */
function isErrno(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error
}
