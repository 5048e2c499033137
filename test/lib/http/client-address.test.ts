// The caller's address: whom proxies may name, and whom nobody may name.
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import { callerOf, readProxies } from '../../../src/lib/http/client-address.ts'

const trusted = readProxies('10.0.0.0/8, 127.0.0.1, fd00::/8')!
const from = (remoteAddress: string, headers: Record<string, string> = {}) =>
  callerOf({ socket: { remoteAddress }, headers } as unknown as IncomingMessage, trusted)
const xff = (value: string) => ({ 'x-forwarded-for': value })
const forwarded = (value: string) => ({ forwarded: value })

describe('the caller', () => {
  for (const [name, peer, headers, expected] of [
    ['is the peer', '192.0.2.1', {}, '192.0.2.1'],
    ['is the peer, whatever headers an untrusted peer sends', '192.0.2.1', xff('192.0.2.9'), '192.0.2.1'],
    ['is the address that a proxy names', '10.0.0.1', xff('192.0.2.9'), '192.0.2.9'],
    [
      'is the address that a proxy names, on a socket of both families',
      '::ffff:10.0.0.1',
      xff('192.0.2.9'),
      '192.0.2.9',
    ],
    ['is the last address that is no proxy', '10.0.0.1', xff('198.51.100.1, 192.0.2.9, 10.9.9.9'), '192.0.2.9'],
    ['is the proxy itself if it names no address', '10.0.0.1', xff('unknown'), '10.0.0.1'],
    ['is the last proxy before a name that is no address', '10.0.0.1', xff('192.0.2.9, _hidden, 10.0.0.2'), '10.0.0.2'],
    ['is named without its port', '10.0.0.1', xff('192.0.2.9:4711'), '192.0.2.9'],
    ['may have an IPv6 address', 'fd00::1', xff('2001:db8::1'), '2001:db8::1'],
    ['is read from Forwarded', '10.0.0.1', forwarded('for=192.0.2.9;proto=https'), '192.0.2.9'],
    ['is read from Forwarded, quoted', '10.0.0.1', forwarded('proto=https; For="[2001:db8::1]:80"'), '2001:db8::1'],
    ['is the proxy if Forwarded names no address', '10.0.0.1', forwarded('proto=https'), '10.0.0.1'],
    [
      'is accepted from both headers if they agree',
      '10.0.0.1',
      { ...xff('192.0.2.9'), ...forwarded('for=192.0.2.9') },
      '192.0.2.9',
    ],
    [
      'is the peer if the two headers differ',
      '10.0.0.1',
      { ...xff('192.0.2.9'), ...forwarded('for=192.0.2.8') },
      '10.0.0.1',
    ],
  ] as const) {
    test(name, () => assert.equal(from(peer, headers), expected))
  }
})

describe('trusted proxies', () => {
  test('are none by default', () => assert.equal(readProxies('')!.has('127.0.0.1'), false))
  for (const list of ['loopback', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', '::1/129', '10.0.0', 'a,10.0.0.1']) {
    test(`are not "${list}"`, () => assert.equal(readProxies(list), undefined))
  }
})
