// Validates the address of a database before connecting, and recognizes errors of TLS trust.
import { accessSync, constants } from 'node:fs'

import { readHosts, TARGETS } from './hosts.ts'

const FILES = ['sslrootcert', 'sslcert', 'sslkey']
const MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']

/** The mistakes in an address, as phrases that follow its name. They never repeat the address, which contains a password. */
export function mistakesIn(given: string): string[] {
  const list = readHosts(given)
  if (list && !TARGETS.includes(list.target))
    return [`must have a target_session_attrs that is one of ${TARGETS.join(', ')}.`]
  const address = list ? list.at(list.hosts[0]!) : given
  // A password with a host in the parameters: `user:password@/database?host=…`.
  const url = URL.parse(address) ?? URL.parse(address.replace('@/', '@socket/'))
  if (!url) return ['is not a URL: write # / ? @ and % in its user and password as %23 %2F %3F %40 and %25.']
  const mode = url.searchParams.get('sslmode')
  const files = FILES.filter((name) => url.searchParams.has(name) && !isReadable(url.searchParams.get(name)!))
  return [
    ...(mode !== null && !MODES.includes(mode) ? [`must have an sslmode that is one of ${MODES.join(', ')}.`] : []),
    ...files.map((name) => `must have a readable file as its ${name}.`),
  ]
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

const UNTRUSTED =
  /^(?:ERR_(?:TLS|SSL)_|EPROTO$|CERT_|CRL_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|INVALID_|PATH_LENGTH_|HOSTNAME_)/

/** The message of an error of TLS: the certificate is not trusted, or the server does not support TLS. Else undefined. */
export function whyUntrusted(error: unknown): string | undefined {
  const { code, message = '' } = error as { code?: unknown; message?: string }
  const isAboutTls = typeof code === 'string' && UNTRUSTED.test(code)
  if (!isAboutTls && message !== 'The server does not support SSL connections') return undefined
  // Removes the advice that Node appends, which does not apply here.
  return message.replace(/;.*$|[:\s]+$/, '')
}
