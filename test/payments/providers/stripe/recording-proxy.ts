// A proxy before an HTTP server that records every request with its response.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Recorded {
  method: string
  path: string
  status: number
  body: unknown
}

export async function recordingProxy(target: string) {
  const calls: Recorded[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { host: _host, connection: _connection, ...headers } = request.headers as Record<string, string>
    const { method = 'GET', url = '/' } = request
    const sent = Buffer.concat(chunks)
    const answer = await fetch(target + url, { method, headers, ...(sent.length > 0 && { body: sent }) })
    const text = await answer.text()
    calls.push({ method, path: url.split('?')[0]!, status: answer.status, body: JSON.parse(text) })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
