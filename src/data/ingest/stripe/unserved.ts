// Tells an object that Stripe does not serve from an outage, so that it does not hold up the others.
import { type StripeSource, Unreachable } from './source.ts'
import type { Step } from './steps.ts'

/**
 * Does the work for all objects of a step. If Stripe does not serve something that it needs, it is done for one after the other; returns
 * those for which it fails alone. Throws after an outage: if Stripe does not serve the step's list either, or fails
 * otherwise for the next object.
 */
export async function forEachServed<T>(
  source: Pick<StripeSource, 'page'>,
  { path }: Pick<Step, 'path'>,
  objects: T[],
  work: (objects: T[]) => Promise<void>,
): Promise<Left<T>[]> {
  const left: Left<T>[] = []
  let before = await failureOf(() => work(objects))
  if (!before) return left
  for (const object of objects) {
    const error = await failureOf(() => work([object]))
    if (error) {
      if (before && before.call !== error.call) throw error
      await source.page(path, { limit: 1 })
      left.push({ object, error })
    }
    before = error
  }
  return left
}

interface Left<T> {
  object: T
  error: Unreachable
}

/** Completes the sentence "ID …". */
export const whyLeft = ({ path, why }: Unreachable): string => `cannot be read whole at Stripe (${path}: ${why})`

async function failureOf(work: () => Promise<void>): Promise<Unreachable | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (error instanceof Unreachable) return error
    throw error
  }
}
