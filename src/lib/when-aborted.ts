// Ends the wait for work that may ignore its signal, by racing the work against the signal.

/** Rejects once the signal is aborted, with its reason or with what `reason` returns; never settles without a signal. */
export function rejectWhenAborted(signal: AbortSignal | undefined, reason = () => signal?.reason): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal?.aborted) reject(reason())
    signal?.addEventListener('abort', () => reject(reason()), { once: true })
  })
}
