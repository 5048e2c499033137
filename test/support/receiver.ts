// A webhook receiver on 127.0.0.1 that records requests and responds as the test says.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Arrival {
  path: string
  headers: IncomingHttpHeaders
  body: string
  /** Milliseconds on this process's clock. */
  at: number
}

/** The response of a receiver: a status, or a function that writes it. */
export type Respond = (arrival: Arrival, response: ServerResponse) => number | undefined

export async function startReceiver(respond: Respond = () => 204, port = 0) {
  const arrivals: Arrival[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const arrival = { path: request.url!, headers: request.headers, body, at: performance.now() }
      arrivals.push(arrival)
      const status = respond(arrival, response)
      if (status !== undefined) response.writeHead(status).end()
    })
    request.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const bound = (server.address() as AddressInfo).port
  return {
    arrivals,
    port: bound,
    url: `http://127.0.0.1:${bound}`,
    close: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
