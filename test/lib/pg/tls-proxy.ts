// A TLS proxy before a test's database: the client requests TLS in clear text, receives "S", and continues encrypted.
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext, TLSSocket } from 'node:tls'
import { type Certificate, makeCertificate } from './certificate.ts'

export interface TlsProxy {
  /** The URL of the database over TLS; with `no-verify` the certificate is not checked. */
  url(sslmode?: 'verify-full' | 'no-verify', name?: 'localhost' | '127.0.0.1'): string
  /** The same without the certificate of the authority. */
  untrustedUrl: string
  /** The number of encrypted connections. */
  encrypted(): number
  close(): Promise<void>
}

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

/** A TCP proxy before the server of a database URL, with a certificate for `localhost`. */
export async function openTlsProxy(databaseUrl: string): Promise<TlsProxy> {
  const { hostname, port, searchParams } = new URL(databaseUrl)
  const host = searchParams.get('host') ?? hostname
  const target = host.startsWith('/')
    ? { path: `${host}/.s.PGSQL.${port || 5432}` }
    : { host, port: Number(port || 5432) }
  const certificate = makeCertificate('localhost')
  const folder = mkdtempSync(join(tmpdir(), 'tundish-tls-'))
  const root = join(folder, 'root.pem')
  writeFileSync(root, certificate.cert)
  let encrypted = 0
  const { server, close } = serve(certificate, (near) => {
    encrypted += 1
    const far = connect(target).on('error', () => near.destroy())
    near.pipe(far).pipe(near)
    near.on('close', () => far.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const at = (name: string, search: string) => {
    const host = `${name}:${(server.address() as AddressInfo).port}`
    return Object.assign(new URL(databaseUrl), { host, search }).href
  }
  return {
    url: (sslmode = 'verify-full', name = 'localhost') =>
      at(
        name,
        sslmode === 'no-verify' ? 'sslmode=no-verify' : `sslmode=verify-full&sslrootcert=${encodeURIComponent(root)}`,
      ),
    untrustedUrl: at('localhost', 'sslmode=verify-full'),
    encrypted: () => encrypted,
    async close() {
      await close()
      rmSync(folder, { recursive: true })
    },
  }
}

/** Clients that do not request TLS are not served. */
function serve(
  { key, cert }: Certificate,
  take: (near: TLSSocket) => void,
): { server: Server; close(): Promise<void> } {
  const secureContext = createSecureContext({ key, cert })
  const sockets = new Set<Socket>()
  const server = createServer((raw) => {
    sockets.add(raw)
    raw.on('error', () => {}).on('close', () => sockets.delete(raw))
    raw.once('data', (asked) => {
      if (!asked.equals(SSL_REQUEST)) return raw.destroy()
      raw.write('S')
      const near = new TLSSocket(raw, { isServer: true, secureContext })
      near.on('error', () => raw.destroy())
      near.once('secure', () => take(near))
    })
  })
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  return { server, close }
}
