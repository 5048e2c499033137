// Faults that a test orders for the next calls of a simulated provider.

/** Which calls a fault is for, and for how many of the next ones. */
export interface Ordered {
  method?: string
  /** A regular expression over the whole path. */
  path: string
  times: number
}

export class OrderedFaults<Fault extends Ordered> {
  #faults: Fault[] = []

  order(fault: Fault): void {
    this.#faults.push(fault)
  }

  clear(): void {
    this.#faults = []
  }

  /** The fault of this call, which counts as one of its times. */
  take(call: { method: string; path: string }): Fault | undefined {
    const found = this.#faults.find(
      ({ times, method, path }) =>
        times > 0 && (method ?? call.method) === call.method && new RegExp(`^${path}$`).test(call.path),
    )
    if (found) found.times--
    return found
  }
}
