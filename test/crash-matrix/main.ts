// npm run crash-matrix [-- simulator|stripe]: kills a process at every point of every scenario of each provider, and judges what is left.
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import { describe, Matrix, scenariosOf } from './matrix.ts'

await globalSetup()
try {
  const named = process.argv.slice(2)
  for (const provider of (['simulator', 'stripe'] as const).filter(
    (one) => named.length === 0 || named.includes(one),
  )) {
    const matrix = await Matrix.open(provider)
    const scenarios = scenariosOf(provider)
    let cases = 0
    try {
      for (const scenario of scenarios) {
        const points = await matrix.points(scenario)
        for (const it of points) {
          process.stdout.write(`${describe(it)}\n`)
          await matrix.crash(it)
        }
        cases += points.length
      }
      await matrix.judge()
      process.stdout.write(`${cases} deaths in ${scenarios.length} scenarios: every one came right by itself.\n`)
    } finally {
      await matrix.close()
    }
  }
} finally {
  await globalTeardown()
}
