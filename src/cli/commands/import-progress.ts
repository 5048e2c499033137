// The progress of an import on a terminal: how much is done, rows a second, and the time left.
import { SingleBar } from 'cli-progress'
import type { Progress } from '../../data/ingest/progress.ts'

// Reading takes about this share of the time, writing the rest.
const READING = 0.4
const STEPS = 1000

/** `bytes` is how much there is to read, if that is known. In a pipe nothing is shown. */
export function showProgress(bytes: number | undefined): { update: (progress: Progress) => void; stop: () => void } {
  if (!process.stderr.isTTY) return { update() {}, stop() {} }
  const format = '{bar} {percentage}% | {step} | {lines} rows | {rate} rows/s | {left} left'
  const bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true, gracefulExit: false })
  const startMs = performance.now()
  bar.start(STEPS, 0, { step: 'reading', lines: 0, rate: 0, left: '?' })
  return {
    update(progress) {
      const seconds = (performance.now() - startMs) / 1000
      const done = share(progress, bytes)
      bar.update(Math.floor(done * STEPS), {
        step: progress.step,
        lines: progress.lines,
        rate: Math.round(progress.lines / seconds),
        left: done > 0 ? duration((seconds / done) * (1 - done)) : '?',
      })
    },
    stop: () => bar.stop(),
  }
}

/** The progress of an import from a service, on a terminal only. Without a total: the service does not return the number of objects. */
export function showObjects(): { update: (step: string, read: number) => void; stop: () => void } {
  if (!process.stderr.isTTY) return { update() {}, stop() {} }
  const format = '{step} | {read} objects read | {rate} a second'
  const bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true, gracefulExit: false })
  const startMs = performance.now()
  let before: number | undefined
  bar.start(1, 0, { step: 'beginning', read: 0, rate: 0 })
  return {
    update(step, read) {
      before ??= read
      const seconds = (performance.now() - startMs) / 1000
      bar.update(0, { step, read, rate: Math.round((read - before) / seconds) })
    },
    stop: () => bar.stop(),
  }
}

function share({ step, bytes, lines, rows }: Progress, allBytes: number | undefined): number {
  if (step === 'reading') return allBytes ? READING * Math.min(bytes / allBytes, 1) : 0
  return lines === 0 ? 1 : READING + (1 - READING) * (rows / lines)
}

/** `1:02:03`, or `2:03` below an hour. */
function duration(seconds: number): string {
  const whole = Math.round(seconds)
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const shown = parts[0] === 0 ? parts.slice(1) : parts
  return shown.map((part, n) => (n === 0 ? String(part) : String(part).padStart(2, '0'))).join(':')
}
