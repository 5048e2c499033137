// A TCP proxy before the database of a URL, which a test can cut or freeze.
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from './cli.ts'

export interface DatabaseProxy {
  /** The URL of the database through the proxy. */
  url: string
  /** Breaks every connection and refuses new ones. */
  cut(): Promise<void>
  mend(): Promise<void>
  /** Accepts new connections and forwards nothing, like a frozen server. */
  freeze(): void
}

/** With `cutAt`, a connection is broken before data that matches is forwarded to the database. */
export async function openProxy(databaseUrl: string, cutAt?: { pattern: RegExp | undefined }): Promise<DatabaseProxy> {
  const { hostname, port: serverPort, searchParams } = new URL(databaseUrl)
  const host = searchParams.get('host') ?? hostname
  const target = host.startsWith('/')
    ? { path: `${host}/.s.PGSQL.${serverPort || 5432}` }
    : { host, port: Number(serverPort || 5432) }
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  }
  let isFrozen = false
  const listen = (port: number) => {
    const server = createServer((near) => {
      keep(near)
      if (isFrozen) return
      const far = connect(target)
      keep(far)
      near.on('data', (chunk) => {
        if (cutAt?.pattern?.test(chunk.toString('latin1'))) near.destroy()
        else far.write(chunk)
      })
      far.pipe(near)
      near.on('close', () => far.destroy())
      far.on('close', () => near.destroy())
    })
    return new Promise<typeof server>((resolve, reject) =>
      server.on('error', reject).listen(port, '127.0.0.1', () => resolve(server)),
    )
  }
  // For `mend`: a port that the system gave out may be taken by then.
  const port = await freePort()
  let server = await listen(port)
  return {
    url: Object.assign(new URL(databaseUrl), { host: `127.0.0.1:${port}`, search: '' }).href,
    async cut() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
    async mend() {
      isFrozen = false
      server = await listen(port)
    },
    freeze() {
      isFrozen = true
      for (const socket of sockets) socket.pause()
    },
  }
}
