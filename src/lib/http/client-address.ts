// Whose address a request comes from, when proxies that we trust may name it.
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'

/** The addresses whose word counts. */
export interface TrustedProxies {
  has(address: string): boolean
}

/** Reads a list of addresses and networks such as `10.0.0.0/8, ::1`; undefined when one of them is neither. */
export function readProxies(list: string): TrustedProxies | undefined {
  const blocks = new BlockList()
  const items = list.split(',').map((item) => item.trim())
  for (const item of items.filter((one) => one !== '')) {
    const [address = '', bits, ...more] = item.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    const most = family === 'ipv6' ? 128 : 32
    const length = bits === undefined ? most : /^[0-9]{1,3}$/.test(bits) ? Number(bits) : Number.NaN
    if (isIP(address) === 0 || more.length > 0 || !(length <= most)) return undefined
    blocks.addSubnet(address, length, family)
  }
  return {
    has: (address) => isIP(address) !== 0 && blocks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
  }
}

/**
 * The address of the caller. A trusted proxy may name it in `X-Forwarded-For` or `Forwarded`, each proxy adding to the
 * end; from there the first address that is not a trusted proxy's is the caller. Two headers that tell of two callers
 * prove that one of them was passed on unread: then the connection's own address counts.
 */
export function callerOf({ socket, headers }: IncomingMessage, trusted: TrustedProxies): string {
  const peer = plain(socket.remoteAddress ?? '')
  if (!trusted.has(peer)) return peer
  const told = [xForwardedFor(headers['x-forwarded-for']), forwarded(headers.forwarded)]
    .filter((hops) => hops !== undefined)
    .map((hops) => firstStranger(peer, hops, trusted))
  return new Set(told).size === 1 ? told[0]! : peer
}

function firstStranger(peer: string, hops: string[], trusted: TrustedProxies): string {
  let caller = peer
  for (const hop of hops.reverse()) {
    // What is no address is where our knowledge ends.
    if (!trusted.has(caller) || isIP(hop) === 0) break
    caller = hop
  }
  return caller
}

function xForwardedFor(header: string | string[] | undefined): string[] | undefined {
  if (header === undefined) return undefined
  return [header].flat().join(',').split(',').map(addressIn)
}

/** RFC 7239: `for=192.0.2.43, for="[2001:db8::1]:4711";proto=https`. */
function forwarded(header: string | undefined): string[] | undefined {
  if (header === undefined) return undefined
  return header.split(',').map((element) => addressIn(/(?:^|;)\s*for="?([^";]*)"?/i.exec(element)?.[1] ?? ''))
}

/** The address of a node, without brackets and port. */
function addressIn(node: string): string {
  const text = node.trim()
  const [, bracketed] = /^\[([^\]]*)\](?::[0-9]+)?$/.exec(text) ?? []
  const [, withPort] = /^([0-9.]+):[0-9]+$/.exec(text) ?? []
  return plain(bracketed ?? withPort ?? text)
}

/** An IPv4 address that came through an IPv6 socket is an IPv4 address. */
const plain = (address: string) => address.replace(/^::ffff:(?=[0-9.]+$)/i, '')
