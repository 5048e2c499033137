// Does what comes in crowds a little at a time, so that whoever else came meanwhile is served in between.

// One turn of the event loop spends about so long on it.
const SLICE_MS = 2

/** Answers a function that has this done for each thing it is given, in their order and very soon. */
export function littleByLittle<T>(act: (thing: T) => void): (thing: T) => void {
  let crowd: T[] = []
  let at = 0
  const slice = () => {
    const endMs = performance.now() + SLICE_MS
    while (at < crowd.length && performance.now() < endMs) act(crowd[at++]!)
    if (at < crowd.length) {
      setImmediate(slice)
      return
    }
    crowd = []
    at = 0
  }
  return (thing) => {
    crowd.push(thing)
    if (crowd.length === 1) setImmediate(slice)
  }
}
