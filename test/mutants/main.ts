// npm run test:deep mutants: plants each small bug alone, and shows which checks found it. With names: only these.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PLANT = fileURLToPath(new URL('plant.ts', import.meta.url))
const SIMULATION = fileURLToPath(new URL('../simulation/main.ts', import.meta.url))
const SEEDS = 150

const { values, positionals } = parseArgs({ allowPositionals: true, options: { list: { type: 'boolean' } } })
const unknown = positionals.filter((name) => !mutants[name])
if (unknown.length > 0) throw new Error(`There is no mutant ${unknown.join(', ')}.`)
const names = positionals.length > 0 ? positionals : Object.keys(mutants)

let survivors = 0
// One server for all runs, each with its own databases.
if (!values.list) await globalSetup()
console.log('| mutant | what it does wrong | found by |\n|---|---|---|')
for (const name of names) {
  const mutant = mutants[name]!
  // One that cannot be planted counts as one that nothing found: the code has moved on.
  const found = values.list ? '' : await findingOf(name, mutant).catch((error: Error) => console.error(error.message))
  if (typeof found !== 'string') survivors++
  console.log(`| ${name} | ${mutant.does} | ${found ?? '**nothing**'} |`)
}
if (!values.list) console.log(`\n${names.length - survivors} of ${names.length} mutants were found.`)
process.exitCode = survivors > 0 ? 1 : 0
if (!values.list) await globalTeardown()

/** What noticed the bug; undefined: nothing did. Throws when the bug cannot be planted. */
async function findingOf(name: string, { foundBy }: Mutant): Promise<string | undefined> {
  if (!Array.isArray(foundBy)) {
    const which = foundBy === 'simulation of restores' ? ['--restores'] : []
    const { failed, output } = await run(name, [SIMULATION, '--seeds', String(SEEDS), ...which, '--mutant', name])
    if (!failed) return undefined
    const seed = /^Seed \d+ \(number (\d+)\): (.{1,90})/m.exec(output)
    if (!seed) throw new Error(`The simulation broke off with ${name}:\n${output.slice(-2000)}`)
    return `simulation, seed ${seed[1]}: ${seed[2]!.replaceAll('|', '/')}`
  }
  const args = ['--test', '--test-global-setup=test/support/global-setup.ts', '--test-reporter=tap', ...foundBy]
  const { failed, output } = await run(name, args)
  if (/The bug cannot be planted/.test(output)) throw new Error(`The bug of ${name} cannot be planted.`)
  if (!failed) return undefined
  const test = [...output.matchAll(/^\s*not ok \d+ - (.+)$/gm)].map((match) => match[1]!)[0]
  return `test "${(test ?? 'a test file').replaceAll('|', '/').slice(0, 90)}"`
}

function run(name: string, args: string[]): Promise<{ failed: boolean; output: string }> {
  const env = {
    ...process.env,
    TUNDISH_MUTANT: name,
    NODE_OPTIONS: `--import=${PLANT} --disable-warning=ExperimentalWarning`,
  }
  delete env['NODE_TEST_CONTEXT' as keyof typeof env]
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: ROOT, env, maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
      resolve({ failed: error !== null, output: `${stdout}\n${stderr}` })
    })
  })
}
