// The guard: its deadline, its places, its queue; and the circuit on a clock moved by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import { Circuit } from '../../../src/payments/providers/circuit.ts'
import { Guard } from '../../../src/payments/providers/guard.ts'
import { PrimerProvider } from '../../../src/payments/providers/primer/primer.ts'
import { ProviderError } from '../../../src/payments/providers/provider.ts'
import { openPrimerSimulator, PRIMER_KEY } from '../../support/simulators.ts'
import { HandClock, machineSleeps, until } from '../../support/time.ts'
import { charged, charging, refundRequest } from './charging.ts'

const forEver = () => new Promise<never>(() => {})
const trouble = async () => {
  throw new ProviderError('it broke')
}

test('a call that does not listen to its signal ends at the deadline', async () => {
  const guard = new Guard({ clock: new HandClock(), deadlineMs: 50 })
  assert.deepEqual(await guard.run(forEver), { outcome: 'unknown', why: 'no response within 50 ms' })
})

test('a provider error is an unknown outcome, any other error is thrown', async () => {
  const guard = new Guard({ clock: new HandClock() })
  assert.deepEqual(await guard.run(trouble), { outcome: 'unknown', why: 'it broke' })
  const bug = async () => {
    throw new TypeError('a bug')
  }
  await assert.rejects(guard.run(bug), TypeError)
})

test('at most maxInFlight calls at a time; the others wait their turn', async () => {
  const guard = new Guard({ clock: new HandClock(), maxInFlight: 2 })
  const order: number[] = []
  let now = 0
  let most = 0
  const call = (n: number) => async () => {
    most = Math.max(most, ++now)
    await new Promise((resolve) => setTimeout(resolve, 5))
    now--
    order.push(n)
  }
  await Promise.all([1, 2, 3, 4, 5, 6].map((n) => guard.run(call(n))))
  assert.equal(most, 2)
  assert.deepEqual(order, [1, 2, 3, 4, 5, 6])
})

test('a rate spreads calls out behind a short burst, and refuses new charges when they would wait for long', async () => {
  const guard = new Guard({ clock: new HandClock(), maxPerSecond: 100 })
  const begunMs = performance.now()
  await Promise.all(Array.from({ length: 35 }, () => guard.run(async () => {})))
  // A burst of a quarter of a second lets 25 calls through at once.
  assert.ok(performance.now() - begunMs >= 95, `${performance.now() - begunMs} ms`)
  assert.equal(guard.admits(), true)
  const stop = new AbortController()
  const many = Array.from({ length: 200 }, () => guard.run(async () => {}, stop.signal))
  assert.equal(guard.admits(), false)
  stop.abort()
  const outcomes = await Promise.all(many)
  assert.ok(outcomes.some((one) => one?.outcome === 'unknown'))
})

test('charges come before readings that came earlier, which get the rest of the rate', async () => {
  const guard = new Guard({ clock: new HandClock(), maxPerSecond: 100 })
  const read = { purpose: 'reading' } as const
  let readings = 0
  const stop = new AbortController()
  const many = Array.from({ length: 300 }, () => guard.run(async () => void readings++, stop.signal, read))
  await guard.run(async () => {}, undefined, { purpose: 'look_up' })
  assert.equal(guard.admits(), true)
  const before = readings
  for (let n = 0; n < 5; n++) await guard.run(async () => {})
  assert.ok(readings - before <= 5, `${readings - before} of ${before} readings came before five charges`)
  stop.abort()
  await Promise.all(many)
})

test('a look-up comes before readings, and while charges use up the rate too, one of ten calls is neither of them', async () => {
  // Where this process stands still, all charges may be due before the next reading: then once more.
  await until('a reading before the last charge', async () => {
    const guard = new Guard({ clock: new HandClock(), maxPerSecond: 100 })
    const order: string[] = []
    const run = (purpose: 'charge' | 'look_up' | 'reading') =>
      guard.run(async () => void order.push(purpose), undefined, { purpose })
    const charges = Array.from({ length: 80 }, () => run('charge'))
    const beganMs = performance.now()
    const calls = [run('reading'), run('reading'), run('look_up')]
    // After a tenth of a second the second reading would be due before there is a look-up.
    const isTogether = performance.now() - beganMs < 50
    await Promise.all([...charges, ...calls])
    if (!isTogether) return false
    const others = order.filter((purpose) => purpose !== 'charge')
    assert.deepEqual(others, ['reading', 'look_up', 'reading'])
    return order.lastIndexOf('charge') > order.lastIndexOf('reading')
  })
})

test('a full queue turns callers away, unsent, and its circuit stays closed', async () => {
  const guard = new Guard({
    clock: new HandClock(),
    deadlineMs: 80,
    maxInFlight: 1,
    maxWaiting: 1,
    circuit: { failures: 2 },
  })
  const first = guard.run(forEver)
  assert.equal(guard.admits(), true)
  const second = guard.run(forEver, AbortSignal.timeout(30))
  assert.equal(guard.admits(), false)
  let wasSent = false
  const third = await guard.run(async () => {
    wasSent = true
  })
  assert.deepEqual(third, { outcome: 'unknown', why: 'not sent: too many calls are waiting' })
  const fourth = await guard.begin(async () => {
    wasSent = true
  })
  assert.deepEqual(fourth, { outcome: 'not_begun', why: 'not sent: too many calls are waiting', cause: 'busy' })
  assert.equal(wasSent, false)
  assert.equal(((await first) as { outcome: string }).outcome, 'unknown')
  assert.deepEqual(await second, { outcome: 'unknown', why: 'not sent: no connection became free in time' })
  assert.equal(guard.circuit.isOpen(), false)
  assert.equal(await guard.run(async () => 'a place is free again'), 'a place is free again')
})

test('not begun for a first call that was not sent in time; unknown for one that broke or was given up', async () => {
  const guard = new Guard({ clock: new HandClock(), maxInFlight: 1 })
  const stop = new AbortController()
  const first = guard.begin(forEver, stop.signal)
  const second = await guard.begin(forEver, AbortSignal.timeout(10))
  assert.deepEqual(second, { outcome: 'not_begun', why: 'not sent: no connection became free in time', cause: 'busy' })
  stop.abort()
  assert.deepEqual(await first, { outcome: 'unknown', why: 'the call was given up' })
  assert.deepEqual(await guard.begin(trouble), { outcome: 'unknown', why: 'it broke' })
})

test('a call given up before it began is not sent', async () => {
  const guard = new Guard({ clock: new HandClock() })
  const response = await guard.run(async () => 'sent', AbortSignal.abort())
  assert.deepEqual(response, { outcome: 'unknown', why: 'the call was given up' })
  const first = await guard.begin(async () => 'sent', AbortSignal.abort())
  assert.deepEqual(first, { outcome: 'not_begun', why: 'the call was given up', cause: 'busy' })
})

test('callers that give up do not open the circuit', async () => {
  const guard = new Guard({ clock: new HandClock(), circuit: { failures: 2 } })
  await Promise.all([1, 2, 3].map(() => guard.run(forEver, AbortSignal.timeout(10))))
  assert.equal(guard.circuit.isOpen(), false)
  await Promise.all([1, 2].map(() => guard.run(trouble)))
  assert.equal(guard.circuit.isOpen(), true)
})

test('responses to look-ups do not keep the circuit closed while charges fail, nor close it', async () => {
  const guard = new Guard({ clock: new HandClock(), circuit: { failures: 3 } })
  const lookUp = () => guard.run(async () => 'here', undefined, { moves: false })
  for (let i = 0; i < 3; i++) {
    assert.equal(guard.circuit.isOpen(), false)
    await guard.run(trouble)
    assert.equal(await lookUp(), 'here')
  }
  assert.equal(guard.circuit.isOpen(), true)
  await guard.run(async () => 'charged')
  assert.equal(guard.circuit.isOpen(), false)
})

test('look-ups that fail say nothing of charges', async () => {
  const guard = new Guard({ clock: new HandClock(), circuit: { failures: 3 } })
  for (let i = 0; i < 10; i++) await guard.run(trouble, undefined, { moves: false })
  assert.equal(guard.circuit.isOpen(), false)
})

test('an open circuit closes after a long time without calls', () => {
  const clock = new HandClock()
  const circuit = new Circuit(clock, { failures: 1, restMs: 500, forgetMs: 10_000 })
  circuit.failed()
  clock.advance(10_499)
  assert.equal(circuit.isOpen(), true)
  clock.advance(1)
  assert.equal(circuit.isOpen(), false)
  assert.deepEqual([circuit.admits(), circuit.admits()], [true, true])
  circuit.failed()
  assert.equal(circuit.admits(), false, 'it opens as it did the first time')
  for (let rests = 0; rests < 100; rests++) {
    clock.advance(500)
    assert.deepEqual([circuit.admits(), circuit.isOpen()], [true, true], 'as long as somebody tries it stays open')
  }
})

test('the circuit opens on failures in a row, rests, tries with one, and closes on success', () => {
  const clock = new HandClock()
  const circuit = new Circuit(clock, { failures: 3, windowMs: 1_000, restMs: 500 })
  circuit.failed()
  circuit.failed()
  circuit.succeeded()
  circuit.failed()
  circuit.failed()
  assert.equal(circuit.admits(), true)
  circuit.failed()
  assert.equal(circuit.isOpen(), true)
  assert.equal(circuit.admits(), false)
  clock.advance(500)
  assert.equal(circuit.admits(), true)
  assert.equal(circuit.admits(), false, 'one trial a rest')
  circuit.failed()
  clock.advance(499)
  circuit.failed()
  assert.equal(circuit.admits(), false, 'failures neither shorten nor lengthen the rest')
  clock.advance(1)
  assert.equal(circuit.admits(), true)
  circuit.succeeded()
  assert.equal(circuit.isOpen(), false)
  assert.equal(circuit.admits(), true)
})

test('failures far apart do not open the circuit', () => {
  const clock = new HandClock()
  const circuit = new Circuit(clock, { failures: 3, windowMs: 1_000, restMs: 500 })
  for (let i = 0; i < 9; i++) {
    circuit.failed()
    clock.advance(600)
  }
  assert.equal(circuit.isOpen(), false)
})

test('a first call whose deadline passed while the machine slept in the queue is not sent', async (t) => {
  const guard = new Guard({ clock: systemClock, deadlineMs: 60_000, maxInFlight: 1 })
  const stop = new AbortController()
  const begun = Promise.withResolvers<void>()
  const first = guard.begin(async () => {
    begun.resolve()
    return forEver()
  }, stop.signal)
  const second = guard.begin(async () => 'sent')
  await begun.promise
  machineSleeps(t, 60_000)
  stop.abort()
  assert.equal(((await first) as { outcome: string }).outcome, 'unknown')
  assert.deepEqual(await second, { outcome: 'not_begun', why: 'not sent: the deadline has passed', cause: 'busy' })
  assert.equal(await guard.run(async () => 'a place is free again'), 'a place is free again')
})

test('a refund that is looked up first is not sent after the machine slept', async (t) => {
  const primer = await openPrimerSimulator()
  t.after(() => primer.cleanUp())
  let requests = 0
  const apiUrl = () => {
    // The charge, the look-up of the payment, the refund.
    if (++requests === 3) machineSleeps(t, 60_000)
    return primer.url
  }
  const account = { apiKey: PRIMER_KEY, merchantId: 'primer-1', isSandbox: true, apiUrl }
  const provider = new PrimerProvider({ ...account, clock: systemClock, deadlineMs: 60_000 })
  t.after(() => provider.close())
  const request = refundRequest(await charged(charging(provider), 'tok_visa'), 1050n)
  assert.deepEqual(await provider.refund(request), { outcome: 'unknown', why: 'no response within 60000 ms' })
  assert.deepEqual(await provider.refundsOf(request), [])
})

test('a wall clock that is set back does not lengthen a deadline', async (t) => {
  const beganMs = systemClock.monotonicMs()
  machineSleeps(t, -3_600_000)
  assert.ok(systemClock.monotonicMs() >= beganMs)
  machineSleeps(t, 60_000)
  assert.ok(systemClock.monotonicMs() - beganMs >= 60_000)
})
