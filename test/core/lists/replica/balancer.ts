// Several servers behind one address: each new connection goes to the next server.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Balancer {
  /** Like the URLs of the servers, which have the same user and database. */
  url: string
  close(): void
}

export async function openBalancer(urls: string[]): Promise<Balancer> {
  const targets = urls.map((url) => {
    const { searchParams, port } = new URL(url)
    return `${searchParams.get('host')}/.s.PGSQL.${port || 5432}`
  })
  const sockets = new Set<Socket>()
  let turn = 0
  const server = createServer((near) => {
    const far = connect({ path: targets[turn++ % targets.length]! })
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {}).on('close', () => other.destroy())
      one.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: Object.assign(new URL(urls[0]!), { host: `127.0.0.1:${port}`, search: '' }).href,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
