// Refuses requests for host names that are not the server's own, so that a web page cannot reach it by DNS rebinding.
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import { shorten } from '../text.ts'

/**
 * Responds with 421 unless `Host` is an IP address, `localhost`, or one of `names`. A page at `evil.example` can make that
 * name resolve to 127.0.0.1 in its visitor's browser, but it cannot make the browser send another `Host`; an address cannot
 * be rebound. `setting` is the name of the setting to change, for the message.
 */
export function allowOwnHostsOnly(app: FastifyInstance, names: readonly string[], setting: string): void {
  const own = new Set(names.map((name) => name.toLowerCase()))
  app.addHook('onRequest', async ({ headers }) => {
    const name = hostName(headers.host ?? '')
    if (isIP(name) !== 0 || name === 'localhost' || name.endsWith('.localhost') || own.has(name)) return
    const given = shorten(headers.host ?? '', 64)
    throw new ApiError(421, 'host_not_allowed', `The host name "${given}" is not allowed: add it to ${setting}.`)
  })
}

/** The name or address without port, brackets, and the dot that ends a complete name. */
function hostName(host: string): string {
  return host
    .toLowerCase()
    .replace(/:[0-9]*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
}
