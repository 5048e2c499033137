// The address of a request's caller, behind trusted proxies.
import type { IncomingMessage } from 'node:http'
import { isWithin, readAddress, readNetwork } from '../addresses.ts'

/** The proxies whose headers are trusted. */
export interface TrustedProxies {
  has(address: string): boolean
}

/** Reads a list of addresses and networks such as `10.0.0.0/8, ::1`; undefined when one of them is neither. */
export function readProxies(list: string): TrustedProxies | undefined {
  const items = list.split(',').map((item) => item.trim())
  const networks = items.filter((item) => item !== '').map(readNetwork)
  if (!networks.every((network) => network !== undefined)) return undefined
  return {
    has(text) {
      const address = readAddress(text)
      return address !== undefined && isWithin(address, networks)
    },
  }
}

/**
 * The address of the caller. Each trusted proxy appends an address to `X-Forwarded-For` or `Forwarded`; the last address
 * that is not a trusted proxy's is the caller. If the two headers disagree, a proxy has passed one of them on unread, and
 * the address of the connection is used.
 *
 * @fastify/proxy-addr does not suffice: it reads only `X-Forwarded-For`, no ports or brackets, and accepts `unknown` as a
 * caller.
 */
export function callerOf({ socket, headers }: IncomingMessage, trusted: TrustedProxies): string {
  const peer = addressIn(socket.remoteAddress ?? '')
  if (!trusted.has(peer)) return peer
  const named = [xForwardedFor(headers['x-forwarded-for']), forwarded(headers.forwarded)]
    .filter((hops) => hops !== undefined)
    .map((hops) => firstUntrusted(peer, hops, trusted))
  return new Set(named).size === 1 ? named[0]! : peer
}

function firstUntrusted(peer: string, hops: string[], trusted: TrustedProxies): string {
  let caller = peer
  for (const hop of hops.reverse()) {
    // Such as `unknown`: the addresses before it cannot be trusted.
    if (!trusted.has(caller) || readAddress(hop) === undefined) break
    caller = hop
  }
  return caller
}

function xForwardedFor(header: string | string[] | undefined): string[] | undefined {
  if (header === undefined) return undefined
  return [header].flat().join(',').split(',').map(addressIn)
}

function forwarded(header: string | undefined): string[] | undefined {
  return header === undefined ? undefined : forwardedValues(header, 'for').map(addressIn)
}

/** The values of a parameter in the elements of `Forwarded`, RFC 7239: `for=192.0.2.43, for="[2001:db8::1]:4711";proto=https`. */
export function forwardedValues(header: string, name: 'for' | 'proto'): string[] {
  const parameter = new RegExp(`(?:^|;)\\s*${name}="?([^";]*)"?`, 'i')
  return header.split(',').map((element) => parameter.exec(element)?.[1] ?? '')
}

/** The address of a node, without brackets and port; other text is returned unchanged. */
function addressIn(node: string): string {
  const text = node.trim()
  const [, bracketed] = /^\[([^\]]*)\](?::[0-9]+)?$/.exec(text) ?? []
  const [, withPort] = /^([0-9.]+):[0-9]+$/.exec(text) ?? []
  const plain = bracketed ?? withPort ?? text
  return readAddress(plain)?.toString() ?? plain
}
