// IP addresses and networks, parsed by ipaddr.js and normalized.
import ipaddr from 'ipaddr.js'

export type Address = ipaddr.IPv4 | ipaddr.IPv6
export type Network = readonly [Address, number]

/** The address of a text, or undefined. IPv4 has four decimal parts; an IPv4 address inside `::ffff:0:0/96` becomes IPv4. */
export function readAddress(text: string): Address | undefined {
  if (!isAddress(text)) return undefined
  const address = ipaddr.parse(text)
  return isMapped(address) ? address.toIPv4Address() : address
}

/** The network of `10.0.0.0/8`, or of a single address; undefined for anything else. */
export function readNetwork(text: string): Network | undefined {
  const [address = '', bits, ...more] = text.split('/')
  if (!isAddress(address) || more.length > 0 || !/^[0-9]{1,3}$/.test(bits ?? '0')) return undefined
  const parsed = ipaddr.parse(address)
  const maxLength = parsed.kind() === 'ipv4' ? 32 : 128
  const length = bits === undefined ? maxLength : Number(bits)
  if (length > maxLength) return undefined
  if (!isMapped(parsed) || length < 96) return [parsed, length]
  return [parsed.toIPv4Address(), length - 96]
}

/** Whether the address is in one of the networks; those of the other family do not match. */
export function isWithin(address: Address, networks: readonly Network[]): boolean {
  return networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network as never, bits))
}

/** The network of an address: its first `bits` bits, as `2001:db8::/64`. */
export function networkOf(address: Address, bits: number): string {
  const cidr = `${address.toString()}/${bits}`
  const network =
    address.kind() === 'ipv4' ? ipaddr.IPv4.networkAddressFromCIDR(cidr) : ipaddr.IPv6.networkAddressFromCIDR(cidr)
  return `${network.toString()}/${bits}`
}

const isAddress = (text: string) => ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text)

const isMapped = (address: Address): address is ipaddr.IPv6 =>
  address.kind() === 'ipv6' && (address as ipaddr.IPv6).isIPv4MappedAddress()

/** The address of a listener: an IPv6 host is in brackets. */
export const httpAddress = (host: string, port: number) => `http://${host.includes(':') ? `[${host}]` : host}:${port}`
