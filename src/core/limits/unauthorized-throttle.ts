// Slows down addresses that keep sending invalid keys.
import { networkOf, readAddress } from '../../lib/addresses.ts'
import type { Clock } from '../../lib/clock.ts'

export interface UnauthorizedThrottle {
  /** Resolves with undefined when this address may get its 401, or with the ms after which it may try again. */
  delay(address: string): Promise<number | undefined>
}

// The refusals of this many seconds are not delayed, so that a program with a wrong key, or a test, is not slowed down.
const FREE_S = 10
// A longer wait is refused at once: waiting requests take memory.
const MAX_WAIT_MS = 5_000
const MAX_WAITING = 1_000
// Bounds the memory; the oldest address is removed first.
const MAX_ADDRESSES = 10_000

/**
 * Allows `perSecond` refusals to one address (of IPv6, to one /64, which one machine may own), with a burst of ten seconds.
 */
export function createUnauthorizedThrottle(clock: Clock, perSecond: number): UnauthorizedThrottle {
  /** When the refusals so far are used up, at the rate. */
  const busyUntilMs = new Map<string, number>()
  let waiting = 0

  return {
    async delay(address) {
      const nowMs = clock.monotonicMs()
      const key = network(address)
      const busyMs = Math.max(busyUntilMs.get(key) ?? 0, nowMs)
      const waitMs = busyMs - nowMs - FREE_S * 1000
      if (waitMs > MAX_WAIT_MS || (waitMs > 0 && waiting >= MAX_WAITING)) return waitMs
      busyUntilMs.delete(key)
      busyUntilMs.set(key, busyMs + 1000 / perSecond)
      if (busyUntilMs.size > MAX_ADDRESSES) busyUntilMs.delete(busyUntilMs.keys().next().value!)
      if (waitMs <= 0) return undefined
      waiting += 1
      await clock.sleep(waitMs)
      waiting -= 1
      return undefined
    },
  }
}

/** The /64 of an IPv6 address, however it is written; any other address unchanged. */
function network(text: string): string {
  const address = readAddress(text.split('%', 1)[0]!)
  if (address === undefined) return text
  return address.kind() === 'ipv6' ? networkOf(address, 64) : address.toString()
}
