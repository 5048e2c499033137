// The deadline of a call to a provider. Timers stand still while the machine sleeps, so it is checked again before a request is sent.
import type { Clock } from '../../lib/clock.ts'

const checks = new WeakMap<AbortSignal, () => void>()

/** Calls `end`, which aborts the signal, after this time. Returns the function that stops the timer. */
export function startDeadline(clock: Clock, signal: AbortSignal, deadlineMs: number, end: () => void): () => void {
  const endMs = clock.monotonicMs() + deadlineMs
  const timer = setTimeout(end, deadlineMs)
  checks.set(signal, () => {
    if (clock.monotonicMs() >= endMs) end()
  })
  return () => clearTimeout(timer)
}

/** Whether the signal is aborted. Aborts one whose deadline passed while the machine slept: the lease has run out, too. */
export function isAborted(signal: AbortSignal): boolean {
  checks.get(signal)?.()
  return signal.aborted
}
