// npm run simulate: plays many seeds, prints the story of any that breaks a rule; --seed plays one again.
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
  },
})
const mutant = values.mutant === undefined ? undefined : mutants[values.mutant]
if (values.mutant !== undefined && !mutant) throw new Error(`There is no mutant ${values.mutant}.`)
replaceSources(mutant)

await globalSetup()
try {
  process.exitCode = await play()
} finally {
  await globalTeardown()
}

async function play(): Promise<number> {
  const { Database } = await import('./database.ts')
  const { simulate } = await import('./world.ts')
  const first = Number(values.seed ?? values.from)
  const last = values.seed === undefined ? first + Number(values.seeds) - 1 : first
  const fresh = await freshDatabase()
  const database = await Database.open(fresh.url)
  const begun = performance.now()
  let steps = 0
  try {
    for (let seed = first; seed <= last; seed++) {
      const outcome = await simulate(database, seed)
      steps += outcome.steps
      if (outcome.violation !== undefined) {
        console.log(`${outcome.story.join('\n')}\n\nSeed ${seed} (number ${seed - first + 1}): ${outcome.violation}`)
        return 1
      }
      if (values.seed !== undefined) console.log(outcome.story.join('\n'))
      if ((seed - first + 1) % 500 === 0)
        console.log(`${seed - first + 1} seeds, ${Math.round(performance.now() - begun)} ms`)
    }
  } finally {
    await database.close()
    await fresh.drop()
  }
  const ms = performance.now() - begun
  const count = last - first + 1
  console.log(`${count} seeds without a violation: ${steps} steps, ${(ms / count).toFixed(1)} ms a seed.`)
  return 0
}
