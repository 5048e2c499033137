// Ends a test process that has not begun its first test after half an hour, or that still runs five minutes after its last one, for
// one that hangs keeps the whole run waiting.
import { after, afterEach, beforeEach } from 'node:test'

// The file's own hooks count too: on a busy machine they take long to stop servers.
const GRACE_MS = 5 * 60_000
// What a file opens before its tests has no time limit of a test.
const OPENING_MS = 30 * 60_000

if (process.env['NODE_TEST_CONTEXT']) {
  let begun = 0
  let ended = 0
  const end = (why: string) => {
    const open = process.getActiveResourcesInfo().join(', ')
    console.error(`${process.argv[1]} ${why} and is ended. It keeps: ${open}.`)
    process.exit(1)
  }
  const opening = () => begun === 0 && end('has not begun its first test after half an hour')
  const closing = () => (begun > ended ? closeLater() : end('still runs five minutes after its last test'))
  const closeLater = () => setTimeout(closing, GRACE_MS).unref()
  setTimeout(opening, OPENING_MS).unref()
  beforeEach(() => void begun++)
  afterEach(() => void ended++)
  // Node also calls it after the first test, where each is begun when the one before has ended: then another one runs.
  after(() => void closeLater())
  // By default a signal ends a process without the event `exit`, for which tests have registered to kill what they have frozen.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
}
