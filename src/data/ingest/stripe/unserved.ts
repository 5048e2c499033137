// Distinguishes an object that Stripe does not serve from an outage, so that it does not hold up the others.
import { type StripeSource, Unreachable } from './source.ts'
import type { Step } from './steps.ts'

/**
 * Does the work for all objects of a step together. If Stripe does not serve what it needs, does it for each object alone, and returns
 * those for which it fails before and after Stripe served the step's list. Throws in an outage: Stripe does not serve the list either,
 * or does not serve another call of the next object. `work` may be repeated.
 */
export async function forEachServed<T>(
  source: Pick<StripeSource, 'page'>,
  { path }: Pick<Step, 'path'>,
  objects: T[],
  work: (objects: T[]) => Promise<void>,
): Promise<Left<T>[]> {
  const left: Left<T>[] = []
  if (!(await failureOf(() => work(objects)))) return left
  let before: Unreachable | undefined
  for (const object of objects) {
    let error = await failureOf(() => work([object]))
    if (error) {
      if (before && before.call !== error.call) throw error
      await source.page(path, { limit: 1 })
      error = await failureOf(() => work([object]))
    }
    if (error) left.push({ object, error })
    before = error
  }
  return left
}

interface Left<T> {
  object: T
  error: Unreachable
}

/** For the state of an import that stores everything else. */
export const whileOthersAreServed = ({ why, path, call }: Unreachable) =>
  new Unreachable(`${why} for ${path}, but serves other objects`, path, call)

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
