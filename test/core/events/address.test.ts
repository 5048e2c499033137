// Which addresses a webhook may reach.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPublicAddress } from '../../../src/core/events/address.ts'

const REFUSED: Record<string, string[]> = {
  'this host': ['0.0.0.0', '::', '127.0.0.1', '127.255.255.254', '::1'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', 'fc00::1', 'fd12:3456::1'],
  'link-local, where clouds keep their metadata': ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'fec0::1'],
  'set aside': ['192.0.0.8', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '240.0.0.1', '255.255.255.255'],
  multicast: ['224.0.0.1', '239.255.255.250', 'ff02::1'],
  'mapped onto IPv6': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '0:0:0:0:0:ffff:a9fe:a9fe'],
  'behind NAT64': ['64:ff9b::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b::a00:1', '64:ff9b::', '64:ff9b:1::1'],
  'in other wrappings': ['::127.0.0.1', '::ffff:0:127.0.0.1', '2002:7f00:1::', '2001:0:7f00:1::', '100::1', '5f00::1'],
  documentation: ['2001:db8::1', '3fff::1'],
  'no address': ['', 'localhost', '127.1', '0x7f000001', '1.2.3.4.5', '2606:4700'],
}

for (const [kind, addresses] of Object.entries(REFUSED)) {
  test(`refused: ${kind}`, () => {
    for (const address of addresses) assert.equal(isPublicAddress(address), false, address)
  })
}

test('reached: addresses of the public internet, also mapped and behind NAT64', () => {
  const addresses = ['1.1.1.1', '8.8.8.8', '172.32.0.1', '100.128.0.1', '192.0.1.1', '223.255.255.255']
  const wider = ['2606:4700:4700::1111', '2a00:1450::1', '2400::1', '::ffff:8.8.8.8', '64:ff9b::808:808']
  for (const address of [...addresses, ...wider]) assert.equal(isPublicAddress(address), true, address)
})
