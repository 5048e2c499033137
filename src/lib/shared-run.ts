// Lets concurrent callers share one run of work whose result is the same for all of them.

/** Returns a function that runs `work`, or joins the run that is under way. */
export function sharedRun<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }
}
