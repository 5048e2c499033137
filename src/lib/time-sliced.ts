// Spreads many small tasks over several turns of the event loop, so that other work runs in between.

import { setImmediate as nextTurn } from 'node:timers/promises'

const SLICE_MS = 2
const ITEMS_A_TURN = 200

/** Returns a function that queues an item; `act` runs for each in order, for about 2 ms in a turn of the event loop. */
export function timeSliced<T>(act: (item: T) => void): (item: T) => void {
  let queue: T[] = []
  let at = 0
  const slice = () => {
    const endMs = performance.now() + SLICE_MS
    while (at < queue.length && performance.now() < endMs) act(queue[at++]!)
    if (at < queue.length) {
      setImmediate(slice)
      return
    }
    queue = []
    at = 0
  }
  return (item) => {
    queue.push(item)
    if (queue.length === 1) setImmediate(slice)
  }
}

/** Maps a list in order, a piece in a turn of the event loop. */
export async function* mappedInTurns<T, R>(items: readonly T[], map: (item: T) => R): AsyncGenerator<R[]> {
  for (let n = 0; n < items.length; n += ITEMS_A_TURN) {
    if (n > 0) await nextTurn()
    yield items.slice(n, n + ITEMS_A_TURN).map(map)
  }
}

/** The same as one list. */
export const mapInTurns = async <T, R>(items: readonly T[], map: (item: T) => R): Promise<R[]> =>
  (await Array.fromAsync(mappedInTurns(items, map))).flat()
