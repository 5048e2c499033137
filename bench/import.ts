// The case "import": a file of many records into an empty project, by the command that operators use.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cpuSeconds } from './cpu.ts'
import { PROJECT } from './generate.ts'
import { writeLines } from './import-lines.ts'
import { recordImport } from './import-record.ts'
import { type Result, type Sample, summary } from './measure.ts'
import type { Options } from './options.ts'
import { commandOf, openRig, type Rig, TUNDISH } from './rig.ts'
import { connection, type Tools } from './tools.ts'

const CPU_SAMPLE_MS = 50

/** Ours and psql in turn, each into empty tables; psql gets prepared rows and runs the same staging, upserts and indexes. */
export async function measureImport(tools: Tools, options: Options, say: (text: string) => void): Promise<Result> {
  const rig = await openRig({ say, durable: true })
  try {
    say(`Writing a file of ${options.size} records…`)
    const file = join(rig.folder, 'records.ndjson')
    await writeLines(file, options.size)
    say('Recording the statements of an import…')
    const script = await recordImport(rig, file)
    const samples: { ours: Sample[]; limit?: Sample[] } = { ours: [] }
    if (tools.psql) samples.limit = []
    for (let round = 0; round < options.rounds; round += 1) {
      say(`Importing, round ${round + 1} of ${options.rounds}…`)
      samples.ours.push(await measureOnEmptyTables(rig, options.size, () => importFile(rig, file)))
      if (tools.psql)
        samples.limit!.push(await measureOnEmptyTables(rig, options.size, () => runScript(rig, tools.psql!, script)))
    }
    return summary('import', 'records', samples)
  } finally {
    await rig.close()
  }
}

/** Empties the tables and measures `work`, which returns the CPU seconds of its program: records a second, and CPU. */
async function measureOnEmptyTables(rig: Rig, records: number, work: () => Promise<number>): Promise<Sample> {
  const { query, tx } = rig.app.db
  await tx((inside) => inside('truncate funnels, products, profiles, counts cascade'))
  await query('checkpoint')
  const postgresBefore = await rig.postgresSeconds()
  const begunMs = performance.now()
  const server = await work()
  const seconds = (performance.now() - begunMs) / 1000
  const [row] = await query(
    `select (select count(*) from profiles) + (select count(*) from sessions) + (select count(*) from subscriptions)
       + (select count(*) from transactions) + (select count(*) from funnels) + (select count(*) from products) as n`,
  )
  if (Number(row!.n) !== records) throw new Error(`${row!.n} of ${records} records were written.`)
  const thousands = records / 1000
  const postgres = ((await rig.postgresSeconds()) - postgresBefore) / thousands
  return { perSecond: records / seconds, cpu: { server: server / thousands, postgres } }
}

async function importFile({ env }: Rig, file: string): Promise<number> {
  const child = spawn(...commandOf(TUNDISH, ['import', '--project', PROJECT, file]), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  let used = 0
  const ended = once(child, 'exit') as Promise<[number | null]>
  // The CPU time of a process cannot be read after its end, so it is read while the process runs.
  while (child.exitCode === null && child.signalCode === null) {
    used = Math.max(used, (await cpuSeconds(child.pid!)) || 0)
    await Promise.race([ended, sleep(CPU_SAMPLE_MS)])
  }
  const [code] = await ended
  if (code !== 0) throw new Error(`The import ended with ${code}.`)
  return used
}

async function runScript({ databaseUrl }: Rig, psql: string, script: string): Promise<number> {
  const args = ['--no-psqlrc', '--quiet', '--set', 'ON_ERROR_STOP=1', '--output', '/dev/null', '--file', script]
  await promisify(execFile)(psql, args, { env: { ...process.env, ...connection(databaseUrl) } })
  return Number.NaN
}
