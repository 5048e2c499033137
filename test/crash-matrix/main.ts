// npm run test:deep crash-matrix [-- simulator|stripe|primer [CARD …]|works|'title of a work']: kills a process at every point of every
// scenario, or of those with these cards, and checks the result.
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import { describe, Matrix, scenariosOf } from './matrix.ts'
import type { ProviderName } from './stand.ts'
import type { Row } from './victim.ts'
import { ROWS } from './victims.ts'
import { WorkMatrix } from './work-matrix.ts'

// A restore crosses hundreds of borders: this many of them are tried, evenly spread.
const MAX_BORDERS = 60

await globalSetup()
try {
  const named = process.argv.slice(2)
  const asked = ROWS.filter(({ title }) => named.some((name) => title.startsWith(name)))
  const isAsked = (part: string) => named.length === 0 || named.includes(part)
  for (const provider of ['simulator', 'stripe', 'primer'] as const)
    if (isAsked(provider)) await killRequests(provider, named)
  if (isAsked('works')) await killWorks(ROWS)
  else if (asked.length > 0) await killWorks(asked)
} finally {
  await globalTeardown()
}

async function killRequests(provider: ProviderName, named: string[]): Promise<void> {
  const matrix = await Matrix.open(provider)
  const all = scenariosOf(provider)
  const chosen = all.filter(({ token }) => named.includes(token))
  const scenarios = chosen.length > 0 ? chosen : all
  let cases = 0
  // On a busy machine a provider's call may time out before the point, at each attempt.
  const notReached: string[] = []
  try {
    for (const scenario of scenarios) {
      const points = await matrix.points(scenario)
      for (const it of points) {
        process.stdout.write(`${describe(it)}\n`)
        await matrix.crash(it).catch((error: Error) => notReached.push(error.message))
      }
      await matrix.judge()
      cases += points.length
      process.stdout.write(`${scenario.kind} ${scenario.token}: ${points.length} deaths, all came right.\n`)
    }
    const reached = cases - notReached.length
    process.stdout.write(`${reached} deaths in ${scenarios.length} scenarios: every one came right by itself.\n`)
    if (notReached.length > 0) throw new Error(`not reached, try again:\n${notReached.join('\n')}`)
  } finally {
    await matrix.close()
  }
}

async function killWorks(rows: readonly Row[]): Promise<void> {
  const matrix = await WorkMatrix.open()
  let deaths = 0
  try {
    for (const row of rows) {
      const borders = await matrix.borders(row, MAX_BORDERS)
      process.stdout.write(`${row.title}: ${borders.length} of ${borders.at(-1) ?? 0} borders\n`)
      for (const border of borders) if (await matrix.crash(row, border)) deaths += 1
    }
    process.stdout.write(`${deaths} deaths in ${rows.length} works: another process did each again.\n`)
  } finally {
    await matrix.close()
  }
}
