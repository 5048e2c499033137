// Ends a test process that still runs five minutes after its last test, for one that hangs keeps the whole run waiting.
import { after } from 'node:test'

// The file's own hooks count too: on a busy machine they take long to stop servers.
const GRACE_MS = 5 * 60_000

if (process.env['NODE_TEST_CONTEXT']) {
  after(() => {
    setTimeout(() => {
      const open = process.getActiveResourcesInfo().join(', ')
      console.error(`${process.argv[1]} still runs five minutes after its last test and is ended. It keeps: ${open}.`)
      process.exit(1)
    }, GRACE_MS).unref()
  })
  // By default a signal ends a process without the event `exit`, for which tests have registered to kill what they have frozen.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
}
