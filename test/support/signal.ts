// Signals to processes that may have ended. Imports nothing of `src`, as postgres.ts.

/** Sends a signal to a process, unless it has ended. */
export function trySignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
