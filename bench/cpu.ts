// The CPU time that processes have used so far, from Linux's /proc.
import { readdir, readFile } from 'node:fs/promises'

const TICKS_A_SECOND = 100

interface Stat {
  pid: number
  parent: number
  seconds: number
  /** Of children that have ended. */
  endedSeconds: number
}

/** CPU seconds of a process with all its descendants, also those that have ended; NaN on systems without /proc. */
export async function cpuSeconds(pid: number): Promise<number> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const stats = (await Promise.all(pids.map(readStat))).filter((stat) => stat !== undefined)
  const children = Map.groupBy(stats, ({ parent }) => parent)
  const root = stats.find((stat) => stat.pid === pid)
  const sum = (stat: Stat): number =>
    (children.get(stat.pid) ?? []).reduce((all, child) => all + sum(child), stat.seconds + stat.endedSeconds)
  return root ? sum(root) : Number.NaN
}

async function readStat(pid: string): Promise<Stat | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (stat === undefined) return undefined
  // The name, in parentheses, may contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) / TICKS_A_SECOND
  return { pid: Number(pid), parent: Number(fields[1]), seconds: ticks(11), endedSeconds: ticks(13) }
}
