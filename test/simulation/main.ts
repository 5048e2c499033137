// npm run test:deep simulation: runs many seeds, and prints the steps of any that breaks a rule; --seed repeats one, --restores runs only
// those that restore a backup.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { mutants } from '../mutants/mutants.ts'
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import { freshDatabase } from '../support/postgres.ts'
import { replaceSources } from './hooks.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    mutant: { type: 'string' },
    jobs: { type: 'string', default: '1' },
    // Only seeds that restore a backup.
    restores: { type: 'boolean', default: false },
  },
})
// The memory of dead simulated processes is not freed, some megabytes for each seed, so many seeds need several programs.
const SEEDS_A_PROGRAM = 100

const first = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.seeds) : 1
const mutant = values.mutant === undefined ? undefined : mutants[values.mutant]
if (values.mutant !== undefined && !mutant) throw new Error(`There is no mutant ${values.mutant}.`)
replaceSources(mutant)

await globalSetup()
try {
  process.exitCode = count > SEEDS_A_PROGRAM ? await playInPrograms() : await play()
} finally {
  await globalTeardown()
}

/** Runs several programs, --jobs at a time, until one finds a violation. */
async function playInPrograms(): Promise<number> {
  const begun = performance.now()
  let next = first
  let played = 0
  let code = 0
  const work = async () => {
    while (code === 0 && next < first + count) {
      const from = next
      next = Math.min(from + SEEDS_A_PROGRAM, first + count)
      const seeds = next - from
      const outcome = await playInProgram(from, seeds)
      played += seeds
      if (outcome.code !== 0) {
        code = outcome.code
        console.log(outcome.output)
      } else if (played % 500 === 0) console.log(`${played} seeds, ${Math.round(performance.now() - begun)} ms`)
    }
  }
  await Promise.all(Array.from({ length: Number(values.jobs) }, work))
  if (code === 0) console.log(`${count} seeds without a violation.`)
  return code
}

async function playInProgram(from: number, seeds: number): Promise<{ code: number; output: string }> {
  const args = [
    '--from',
    String(from),
    '--seeds',
    String(seeds),
    ...(values.mutant ? ['--mutant', values.mutant] : []),
    ...(values.restores ? ['--restores'] : []),
  ]
  const program = spawn(process.execPath, [...process.execArgv, import.meta.filename, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output, [code]] = await Promise.all([text(program.stdout), once(program, 'exit')])
  return { code: code ?? 1, output }
}

async function play(): Promise<number> {
  const { Database } = await import('./database.ts')
  const { restoresBackup, simulate } = await import('./world.ts')
  const last = first + count - 1
  const fresh = await freshDatabase()
  const database = await Database.open(fresh.url)
  const begun = performance.now()
  let steps = 0
  try {
    for (let seed = first; seed <= last; seed++) {
      if (values.restores && !restoresBackup(seed)) continue
      const outcome = await simulate(database, seed)
      steps += outcome.steps
      if (outcome.violation !== undefined) {
        console.log(`${outcome.story.join('\n')}\n\nSeed ${seed} (number ${seed - first + 1}): ${outcome.violation}`)
        return 1
      }
      if (values.seed !== undefined) console.log(outcome.story.join('\n'))
    }
  } finally {
    await database.close()
    await fresh.drop()
  }
  const ms = performance.now() - begun
  console.log(`${count} seeds without a violation: ${steps} steps, ${(ms / count).toFixed(1)} ms a seed.`)
  return 0
}
