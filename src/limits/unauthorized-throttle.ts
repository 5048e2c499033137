// Slows down addresses that keep sending invalid keys.
import { isIPv6 } from 'node:net'
import type { Clock } from '../lib/clock.ts'

export interface UnauthorizedThrottle {
  /** Resolves when this address may get its 401; or with the number of ms after which it may try again. */
  delay(address: string): Promise<number | undefined>
}

// So many seconds' worth of refusals are free; a program with a wrong key, or a test, never notices.
const FREE_S = 10
// A longer wait is refused at once instead: waiting takes memory.
const MOST_WAIT_MS = 5_000
const MOST_WAITING = 1_000
// A bound for memory; the address that came longest ago is forgotten first.
const MOST_ADDRESSES = 10_000

/** `perSecond` refusals go to one address (of IPv6, to one /64, which one machine may own), after ten seconds' worth at once. */
export function createUnauthorizedThrottle(clock: Clock, perSecond: number): UnauthorizedThrottle {
  /** Until when the refusals so far take, at the rate. */
  const busyUntilMs = new Map<string, number>()
  let waiting = 0

  return {
    async delay(address) {
      const nowMs = clock.monotonicMs()
      const key = network(address)
      const busyMs = Math.max(busyUntilMs.get(key) ?? 0, nowMs)
      const waitMs = busyMs - nowMs - FREE_S * 1000
      if (waitMs > MOST_WAIT_MS || (waitMs > 0 && waiting >= MOST_WAITING)) return waitMs
      busyUntilMs.delete(key)
      busyUntilMs.set(key, busyMs + 1000 / perSecond)
      if (busyUntilMs.size > MOST_ADDRESSES) busyUntilMs.delete(busyUntilMs.keys().next().value!)
      if (waitMs <= 0) return undefined
      waiting += 1
      await clock.sleep(waitMs)
      waiting -= 1
      return undefined
    },
  }
}

/** The first four groups of an IPv6 address, however it is written; any other address as it is. */
export function network(address: string): string {
  if (!isIPv6(address)) return address
  const [plain] = address.split('%', 1)
  if (/^::ffff:[0-9.]+$/i.test(plain!)) return plain!.slice(7)
  const [head = '', tail] = plain!.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0)
    while (groups.length < 8 - after) groups.push('0')
    if (tail !== '') groups.push(...tail.split(':'))
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
