// Lets a run continue when a case fails; the error is reported with the results.
import type { Result } from './measure.ts'

let isEnding = false

/** Ends the run: later errors are not reported, because stopping the servers makes the current case fail. */
export function ignoreFurtherErrors(): void {
  isEnding = true
}

export async function attempt(name: string, measure: () => Promise<Result>): Promise<Result> {
  const [result] = await attemptAll(name, async () => [await measure()])
  return result!
}

/** The same for several cases, which all fail if their database cannot be created. */
export async function attemptAll(name: string, measure: () => Promise<Result[]>): Promise<Result[]> {
  try {
    return await measure()
  } catch (error) {
    if (isEnding) return new Promise(() => {})
    process.stderr.write(`        ${name} failed: ${(error as Error).stack}\n`)
    return [{ name, unit: '', contenders: {}, ratios: {}, failure: (error as Error).message }]
  }
}
