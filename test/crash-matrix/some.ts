// A part of the crash matrix of a provider: some points of each scenario, so that every scenario and every point is tried.
import type { TestContext } from 'node:test'
import { type Case, describe, Matrix, scenariosOf } from './matrix.ts'
import type { ProviderName } from './stand.ts'

// These scenarios cover all paths of a request.
const CHOSEN: Record<ProviderName, string[]> = {
  simulator: ['pm_card_visa', 'sim_charge_then_drop', 'sim_drop_no_charge', 'sim_late_300ms', 'sim_refund_then_drop'],
  primer: ['tok_visa', 'tok_authorized', 'tok_drop_after', 'tok_refund_drop_after'],
  stripe: ['pm_card_visa', 'pm_card_chargeDeclined', 'pm_sim_confirm_late_300ms', 'pm_sim_refund_drop_after'],
}
// Each scenario is tried with every third of the points around the provider's calls and the storing of the handle, in turns. Every
// other point is tried with one scenario.
const AROUND_THE_CALL = /^(before|amid|after) (charge|capture|refund|prepare|confirm|store handle of prepared payment)$/

export async function killSome(t: TestContext, provider: ProviderName): Promise<void> {
  const matrix = await Matrix.open(provider, { POINT_API: 'billing' })
  t.after(() => matrix.close())
  const cases: Case[] = []
  const seen = new Set<string>()
  const chosen = scenariosOf(provider).filter(({ token }) => CHOSEN[provider].includes(token))
  for (const [turn, scenario] of chosen.entries()) {
    const points = await matrix.points(scenario)
    const others = points.filter(({ name }) => !AROUND_THE_CALL.test(name) && !seen.has(`${scenario.kind} ${name}`))
    // One in several; the next scenario takes the others.
    const share = others.filter((_, n) => n % 8 === 0)
    const around = points.filter(({ name }) => AROUND_THE_CALL.test(name)).filter((_, n) => (n + turn) % 3 === 0)
    cases.push(...around, ...share)
    for (const { name } of share) seen.add(`${scenario.kind} ${name}`)
  }
  for (const it of cases) {
    t.diagnostic(describe(it))
    await matrix.crash(it)
  }
  await matrix.judge()
}
