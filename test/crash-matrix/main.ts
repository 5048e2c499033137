// npm run crash-matrix: kills a process at every point of every scenario, and judges what is left.
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import { describe, Matrix, scenarios } from './matrix.ts'

await globalSetup()
const matrix = await Matrix.open()
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
  await globalTeardown()
}
