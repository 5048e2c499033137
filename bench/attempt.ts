// A run goes on when a case fails: what went wrong is told with the results.
import type { Result } from './measure.ts'

let brokenOff = false

/** From here on nothing is told any more: the run ends, and what it tears down fails. */
export function breakOff(): void {
  brokenOff = true
}

export async function attempt(name: string, measure: () => Promise<Result>): Promise<Result> {
  const [result] = await attemptAll(name, async () => [await measure()])
  return result!
}

/** For what cannot even begin, as when its database cannot be made. */
export async function attemptAll(name: string, measure: () => Promise<Result[]>): Promise<Result[]> {
  try {
    return await measure()
  } catch (error) {
    if (brokenOff) return new Promise(() => {})
    process.stderr.write(`        ${name} failed: ${(error as Error).stack}\n`)
    return [{ name, unit: '', contenders: {}, ratios: {}, failure: (error as Error).message }]
  }
}
