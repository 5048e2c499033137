// What the disk takes meanwhile: writes a page like those of PostgreSQL's log every 10 ms, and waits until it is on the disk.
import { constants, openSync, writeSync } from 'node:fs'

const EVERY_MS = 10
const PAGE = Buffer.alloc(8192, 'x')
const PAGES = 2048
const { O_CREAT, O_DSYNC, O_WRONLY } = constants

// The file is as large as it becomes from the start, as those of the log are.
const file = openSync(process.argv[2]!, O_WRONLY | O_CREAT | O_DSYNC)
writeSync(file, Buffer.alloc(PAGE.length * PAGES))

/** Milliseconds from when a page was due, so that whoever would have waited behind another is counted too. */
let times: number[] = []
let pages = 0
let due = performance.now()

function write(): void {
  for (; due <= performance.now(); due += EVERY_MS) {
    writeSync(file, PAGE, 0, PAGE.length, (pages++ % PAGES) * PAGE.length)
    times.push(performance.now() - due)
  }
  setTimeout(write, Math.max(0, due - performance.now()))
}

write()
process.on('message', () => {
  process.send!({ times })
  times = []
})
process.send!({})
process.once('SIGTERM', () => process.exit())
