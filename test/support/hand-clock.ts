// A clock that only the test moves.
import type { Clock } from '../../src/lib/clock.ts'

export class HandClock implements Clock {
  #now = 0
  monotonicMs = () => this.#now
  sleep = async (ms: number) => this.advance(ms)
  advance(ms: number): void {
    this.#now += ms
  }
}
