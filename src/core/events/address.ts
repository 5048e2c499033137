// Distinguishes public internet addresses from all others, so that a webhook cannot reach the sender's own network.
import { type Address, isWithin, type Network, readAddress, readNetwork } from '../../lib/addresses.ts'

// The registries of special-purpose addresses (RFC 6890 and its updates), and multicast. The ranges of ipaddr.js do not
// suffice: they lack 192.88.99.0/24 and 3fff::/20, and classify everything unknown as "unicast".
const NOT_PUBLIC = networks(
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
  // Inside 2000::/3: protocol assignments with Teredo and ORCHID, documentation, 6to4.
  '2001::/23 2001:db8::/32 2002::/16 3fff::/20',
)
// The only allocated part of IPv6.
const ALLOCATED_6 = networks('2000::/3')
const NAT64 = networks('64:ff9b::/96')

/**
 * Whether this IPv4 or IPv6 address is one of the public internet. An IPv6 address that carries an IPv4 address (mapped,
 * or translated by NAT64) is judged by the IPv4 address, which is its destination.
 */
export function isPublicAddress(text: string): boolean {
  const address = text.includes('%') ? undefined : readAddress(text)
  if (address === undefined) return false
  const target = isWithin(address, NAT64) ? embedded4(address) : address
  if (target.kind() === 'ipv6' && !isWithin(target, ALLOCATED_6)) return false
  return !isWithin(target, NOT_PUBLIC)
}

/** The last 32 bits as an IPv4 address. */
function embedded4(address: Address): Address {
  return readAddress(address.toByteArray().slice(12).join('.'))!
}

function networks(...lines: string[]): Network[] {
  return lines
    .join(' ')
    .split(' ')
    .map((network) => readNetwork(network)!)
}
