// The simulator's adapter: the contract, then what only this adapter does on the wire.
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ProviderError } from '../../../src/payments/providers/provider.ts'
import { SimulatorProvider } from '../../../src/payments/providers/simulator.ts'
import { openSimulator } from '../../support/simulators.ts'
import { HandClock } from '../../support/time.ts'
import { chargeRequest } from './charging.ts'
import { providerContract } from './provider-contract.ts'

providerContract(
  'the simulator',
  async () => {
    const { url, ...simulator } = await openSimulator()
    return { ...simulator, provider: (limits) => new SimulatorProvider({ url, ...limits }) }
  },
  {
    good: 'pm_card_visa',
    mostMinor: 9_223_372_036_854_775_807n,
    declined: {
      pm_card_chargeDeclined: 'card_declined',
      pm_card_chargeDeclinedInsufficientFunds: 'insufficient_funds',
      pm_card_chargeDeclinedExpiredCard: 'expired_card',
      pm_card_chargeDeclinedProcessingError: 'processing_error',
      pm_card_chargeDeclinedLostCard: 'lost_card',
      pm_card_authenticationRequired: 'authentication_required',
      pm_card_nobodyIssued: 'payment_method_unknown',
    },
    faults: {
      chargeThenDrop: 'sim_charge_then_drop',
      dropNoCharge: 'sim_drop_no_charge',
      late: 'sim_late_300ms',
      slow: 'sim_slow_3000ms',
      refundThenDrop: 'sim_refund_then_drop',
      refundDropped: 'sim_refund_drop',
    },
  },
)

const untrue: [name: string, listener: RequestListener, why: string][] = [
  [
    'a 404 page of somebody else',
    (_q, s) => s.writeHead(404).end('<html>'),
    'returned status 404 with a body that is not JSON',
  ],
  ['a 404 in JSON of somebody else', (_q, s) => s.writeHead(404).end('{"message":"No."}'), 'returned status 404'],
  ['a 200 that says nothing', (_q, s) => s.end('{}'), 'returned no outcome'],
  ['a 200 that denies', (_q, s) => s.end('{"outcome":"not_found"}'), 'returned no outcome'],
  [
    'a success of nothing',
    (_q, s) => s.end('{"outcome":"succeeded"}'),
    'returned an outcome without reference, amount or currency',
  ],
  ...[
    { amount_minor: '0', currency_code: 'USD' },
    { amount_minor: '9223372036854775808', currency_code: 'USD' },
    { amount_minor: '1050', currency_code: 'usd' },
  ].map((sum): (typeof untrue)[number] => [
    `a success of ${sum.amount_minor} ${sum.currency_code}`,
    (_q, s) => s.end(JSON.stringify({ outcome: 'succeeded', reference: 'r', ...sum })),
    'returned an outcome with an impossible amount',
  ]),
  [
    'a success with a failing status',
    (_q, s) => s.writeHead(502).end('{"outcome":"succeeded"}'),
    'returned status 502',
  ],
  [
    'half a response',
    (_q, s) => s.writeHead(200, { 'content-length': 99 }).write('{"outc', () => s.destroy()),
    'the connection broke (ECONNRESET)',
  ],
  [
    'a change to another protocol',
    (_q, s) => s.socket!.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'),
    'the connection ended without a response',
  ],
  ['a response without end', (_q, s) => s.end('x'.repeat(300_000)), 'response exceeds 262144 bytes'],
]

for (const [name, listener, why] of untrue) {
  test(`unknown for ${name}`, async () => {
    await withServer(listener, async (provider) => {
      assert.deepEqual(await provider.lookUp(chargeRequest('pm_card_visa')), { outcome: 'unknown', why })
    })
  })
}

test('unknown for a response that belongs to another request', async () => {
  await withServer(
    (_q, s) => s.writeHead(404).end('{"outcome":"not_found"}'),
    async (provider) => {
      const request = chargeRequest('pm_card_visa')
      assert.deepEqual(await provider.lookUp(request), { outcome: 'not_found' })
      assert.deepEqual(await provider.charge(request), { outcome: 'unknown', why: 'returned status 404 not_found' })
    },
  )
})

test('the trace of the caller travels with a charge', async () => {
  const seen: unknown[] = []
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await withServer(
    (q, s) => {
      seen.push(q.headers['traceparent'])
      s.end('{"outcome":"refused"}')
    },
    async (provider) => {
      await provider.charge(chargeRequest('pm_card_visa', { traceparent }))
      await provider.charge(chargeRequest('pm_card_visa'))
    },
  )
  assert.deepEqual(seen, [traceparent, undefined])
})

const line =
  '{"type":"charge","key":"k","reference":"r","amount_minor":"1","currency_code":"USD","psp_transaction_id":"t","at":"2026-01-01T00:00:00.000000Z"}'

test('the reader of a list may take longer than the deadline of the provider', async () => {
  await withServer(
    (_q, s) => {
      s.write(`[\n${line},\n`)
      // While the reader is at work: after the provider's deadline, and before the reader wants more.
      setTimeout(() => s.end(`${line}\n]\n`), 3_200)
    },
    async (provider) => {
      let seen = 0
      for await (const movement of provider.list('2026-01-01T00:00:00Z')) {
        assert.equal(movement.reference, 'r')
        if (++seen === 1) await sleep(3_500)
      }
      assert.equal(seen, 2)
    },
    3_000,
  )
})

test('a list that breaks off throws, however it breaks', async () => {
  const endings: RequestListener[] = [
    (_q, s) => s.end(`[\n${line}\n`),
    (_q, s) => s.writeHead(200, { 'content-length': 999 }).write(`[\n${line},\n`, () => s.destroy()),
    (_q, s) => s.writeHead(500).end('{}'),
    (_q, s) => s.end('[\n{"type":"charge"}\n]\n'),
    (_q, s) => s.write(`[\n${line},\n`),
  ]
  for (const listener of endings) {
    const read = async (provider: SimulatorProvider) => {
      for await (const movement of provider.list('2026-01-01T00:00:00Z')) assert.equal(movement.reference, 'r')
    }
    // The last one breaks off by saying nothing more.
    await withServer(listener, (provider) => assert.rejects(read(provider), ProviderError), 300)
  }
})

test('connections are kept and used again', async () => {
  const ports = new Set<unknown>()
  await withServer(
    (q, s) => {
      ports.add(q.socket.remotePort)
      s.end('{"outcome":"refused"}')
    },
    async (provider) => {
      for (let i = 0; i < 5; i++) await provider.charge(chargeRequest('pm_card_visa'))
    },
  )
  assert.equal(ports.size, 1)
})

/** A provider at a server that responds so. What is not about the deadline has one that no busy machine reaches. */
async function withServer(
  listener: RequestListener,
  work: (provider: SimulatorProvider) => Promise<void>,
  deadlineMs = 30_000,
) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new SimulatorProvider({ url, clock: new HandClock(), deadlineMs })
  try {
    await work(provider)
  } finally {
    provider.close()
    server.closeAllConnections()
    server.close()
  }
}
