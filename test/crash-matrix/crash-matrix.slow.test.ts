// A part of the crash matrix: of each scenario some points, so that every scenario and every point has its turn.
import { after, before, test } from 'node:test'
import { type Case, describe, Matrix, scenarios } from './matrix.ts'

let matrix: Matrix
before(async () => {
  matrix = await Matrix.open()
})
after(() => matrix.close())

// These go every way that a request can go.
const CHOSEN = ['pm_card_visa', 'sim_charge_then_drop', 'sim_drop_no_charge', 'sim_late_300ms', 'sim_refund_then_drop']
// With each of them the points around the call to the provider; of all other points every one has its turn with one of them.
const AROUND_THE_CALL = /^(before|amid|after) (charge|refund)$/

test('a process killed at any point leaves nothing that does not come right by itself', async (t) => {
  const cases: Case[] = []
  const seen = new Set<string>()
  for (const scenario of scenarios.filter(({ token }) => CHOSEN.includes(token))) {
    const points = await matrix.points(scenario)
    const others = points.filter(({ name }) => !AROUND_THE_CALL.test(name) && !seen.has(`${scenario.kind} ${name}`))
    // Every other one, so that the next scenario has its share.
    const share = others.filter((_, n) => n % 3 === 0)
    cases.push(...points.filter(({ name }) => AROUND_THE_CALL.test(name)), ...share)
    for (const { name } of share) seen.add(`${scenario.kind} ${name}`)
  }
  for (const it of cases) {
    t.diagnostic(describe(it))
    await matrix.crash(it)
  }
  await matrix.judge()
})
