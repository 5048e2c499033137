// Tells addresses of the public internet from all others, so that a webhook cannot reach into the network it is sent from.
import { BlockList, isIP } from 'node:net'

// What the registries of special-purpose addresses (RFC 6890 and its updates) list, and multicast.
const NOT_PUBLIC_4 = [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
]
// Only 2000::/3 is given out at all; inside it: protocol assignments with Teredo and ORCHID, documentation, 6to4.
const GIVEN_OUT_6 = ['2000::/3']
const NOT_PUBLIC_6 = ['2001::/23 2001:db8::/32 2002::/16 3fff::/20']

/**
 * Whether this IPv4 or IPv6 address is one of the public internet. An IPv6 address that carries an IPv4 address (mapped,
 * or translated by NAT64) is judged by that one, for that is where it leads.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !notPublic4.check(address, 'ipv4')
  if (isIP(address) !== 6 || address.includes('%')) return false
  const groups = groupsOf(address)
  const carried = carries4(groups)
  if (carried) return !notPublic4.check(lastAs4(groups), 'ipv4')
  return givenOut6.check(address, 'ipv6') && !notPublic6.check(address, 'ipv6')
}

const notPublic4 = ranges(NOT_PUBLIC_4, 'ipv4')
const givenOut6 = ranges(GIVEN_OUT_6, 'ipv6')
const notPublic6 = ranges(NOT_PUBLIC_6, 'ipv6')

function ranges(lines: string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of lines.join(' ').split(' ')) {
    const [network, bits] = range.split('/') as [string, string]
    list.addSubnet(network, Number(bits), family)
  }
  return list
}

/** `::ffff:0:0/96` is mapped, `64:ff9b::/96` is NAT64's well-known prefix. */
function carries4(groups: number[]): boolean {
  const head = groups.slice(0, 6).map((group) => group.toString(16))
  return ['0:0:0:0:0:ffff', '64:ff9b:0:0:0:0'].includes(head.join(':'))
}

function lastAs4(groups: number[]): string {
  const [high, low] = groups.slice(6) as [number, number]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** The eight groups of a valid IPv6 address. */
function groupsOf(address: string): number[] {
  const dotted = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  const hex = dotted
    ? address.slice(0, dotted.index) +
      [0, 2].map((n) => (Number(dotted[n + 1]) * 256 + Number(dotted[n + 2])).toString(16)).join(':')
    : address
  const [head = '', tail] = hex.split('::')
  const left = numbers(head)
  if (tail === undefined) return left
  const right = numbers(tail)
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right]
}

const numbers = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
