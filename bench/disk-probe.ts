// Measures the disk during a measurement: writes a page like those of PostgreSQL's log every 10 ms, and waits until it is on disk.
import { constants, openSync, writeSync } from 'node:fs'

const EVERY_MS = 10
const PAGE = Buffer.alloc(8192, 'x')
const PAGES = 2048
const { O_CREAT, O_DSYNC, O_WRONLY } = constants

// The file has its final size from the start, like the files of the log.
const file = openSync(process.argv[2]!, O_WRONLY | O_CREAT | O_DSYNC)
writeSync(file, Buffer.alloc(PAGE.length * PAGES))

/** Milliseconds from when a page was due, so that waiting behind the page before counts too. */
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
