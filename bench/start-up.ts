// The case "start": the time from the command to the first response, with the embedded database, in a new folder and in an
// existing one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { median, type Result } from './measure.ts'
import type { Options } from './options.ts'
import { type Closers, commandOf, makeFolder, TUNDISH } from './rig.ts'

export async function measureStart({ rounds }: Options, say: (text: string) => void): Promise<Result> {
  const cold: number[] = []
  const warm: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    say(`Starting, round ${round + 1} of ${rounds}…`)
    const closers: Closers = []
    const folder = await makeFolder(closers)
    try {
      cold.push(await start(folder))
      warm.push(await start(folder))
    } finally {
      for (const closer of closers) await closer()
    }
  }
  const figures = { 'cold s': seconds(cold), 'warm s': seconds(warm) }
  return { name: 'start', unit: 'starts', contenders: {}, ratios: {}, figures }
}

/** Starts and stops a server; returns the milliseconds until it logs that it is ready and responds. */
async function start(folder: string): Promise<number> {
  const begunMs = performance.now()
  const child = spawn(...commandOf(TUNDISH, ['serve']), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATA_DIR: folder, PORT: '0', ADMIN_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /"url":"([^"]+)"/.exec(line)?.[1]
      if (url === undefined) continue
      const { status } = await fetch(`${url}/health/ready`)
      if (status !== 200) throw new Error(`The server is not ready: ${status}.`)
      return performance.now() - begunMs
    }
    throw new Error('The server ended before it was ready.')
  } finally {
    child.stdout.resume()
    child.kill('SIGTERM')
    await exit
  }
}

const seconds = (times: number[]) => ({
  median: median(times)! / 1000,
  least: Math.min(...times) / 1000,
  most: Math.max(...times) / 1000,
})
