// Converts objects one by one, so that one that cannot be imported does not keep the others out.
import { Inconvertible } from './convert.ts'
import { type Rejecting, reject } from './tally.ts'

/** The results of the objects in their order, without those that fail: each is rejected with the reason. */
export async function each<T extends { id: string }, R>(
  rejecting: Rejecting,
  objects: readonly T[],
  work: (object: T) => R | Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  for (const object of objects) {
    try {
      results.push(await work(object))
    } catch (error) {
      const reason = reasonOf(error)
      if (reason === undefined) throw error
      reject(rejecting, object.id, reason)
    }
  }
  return results
}

/** undefined for a failure that has nothing to do with the object. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof Inconvertible) return error.message
  // A value that Stripe's published types do not have: its conversion ends in one of these.
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError)
    return `has a form that is not known (${error.message})`
  return undefined
}
