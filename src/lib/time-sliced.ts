// Spreads many small tasks over several turns of the event loop, so that other work runs in between.

const SLICE_MS = 2

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
