// Seeded chaos at Primer's API: calls that get lost, come late or end with errors, keys that are forgotten, lists that are
// late, orders that are lost. Whatever happens, one purchase is charged at most once, and an outcome that was final stays true.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openRandom, type Random } from '../../../../src/lib/seeded-random.ts'
import { PrimerProvider } from '../../../../src/payments/providers/primer/primer.ts'
import type { ChargeRequest, Movement } from '../../../../src/payments/providers/provider.ts'
import type { PrimerSimulatorOptions } from '../../../../src/simulators/primer/server.ts'
import { openPrimerSimulator, PRIMER_KEY } from '../../../support/simulators.ts'
import { HandClock } from '../../../support/time.ts'
import { chargeRequest, charging } from '../charging.ts'

// SEEDS is how many seeds run, FIRST the first of them: a run of thousands is made of several.
const SEEDS = Number(process.env['SEEDS'] ?? 20)
const FIRST = Number(process.env['FIRST'] ?? 1)
// Seeds that found something.
const FOUND = process.env['FIRST'] === undefined ? [6326] : []
const ACTIONS = 14
const MINUTE_MS = 60_000
const LAG_MS = 45_000
// Minutes, as the core has to expect where nothing is published.
const KEY_LIFE_MS = 5 * MINUTE_MS
// What the core waits for before a payment that is not found counts as not made, and between two such look-ups.
const OVER_MS = 37_500 + 150_000
const APART_MS = 3 * MINUTE_MS

const CARDS = [
  ...['tok_visa', 'tok_visa', 'tok_authorized', 'tok_declined', 'tok_fallback', 'tok_fallback_declined'],
  ...['tok_fallback_authorized', 'tok_pending_1800000ms', 'tok_settling_7200000ms', 'tok_needs_action', 'tok_timeout'],
  ...['tok_partial', 'tok_rejected'],
]
const FAULTS = ['drop_before', 'drop_after', 'error_before', 'error_after', 'busy', 'late']
const PATHS = ['.*', '/payments', '/payments/[^/]+', '/payments/[^/]+/(capture|cancel)']

const START_MS = Date.now()
let nowMs = 0
const account = await openPrimerAccount({ listLagMs: LAG_MS, keyLifeMs: KEY_LIFE_MS, wallClockMs: () => START_MS })
after(() => account.cleanUp())

type Final = 'succeeded' | 'failed' | 'refused'

/** One purchase as the core keeps it. */
interface Purchase {
  request: ChargeRequest
  beganMs: number
  sentMs: number | undefined
  notFoundMs: number | undefined
  verdict: Final | undefined
  story: string[]
}

for (const seed of [...FOUND, ...Array.from({ length: SEEDS }, (_, n) => FIRST + n)]) {
  test(`seed ${seed}: charged at most once, and what was final stays so`, async () => {
    const random = openRandom(seed)
    const request = chargeRequest(`${random.pick(CARDS)}~${seed}`)
    const none = { sentMs: undefined, notFoundMs: undefined, verdict: undefined }
    const purchase: Purchase = { request, beganMs: nowMs, ...none, story: [] }
    for (let n = 0; n < ACTIONS; n++) await act(random, purchase)
    await account.control('/faults/clear')
    await comeToRest(purchase)
    const before = await charges(purchase)
    // What was on its way has long arrived.
    await pass(purchase, 72 * 60 * MINUTE_MS)
    const told = `${request.token}\n${purchase.story.join('\n')}`
    assert.equal(await charges(purchase), before, told)
    assert.equal(before, purchase.verdict === 'succeeded' ? 1 : 0, `${purchase.verdict}, ${before} charges\n${told}`)
    const { outcome } = await account.provider.lookUp(purchase.request)
    // Where nothing was ever made, there is nothing to find.
    assert.ok(
      outcome === purchase.verdict || (purchase.verdict === 'refused' && outcome === 'not_found'),
      `${outcome}\n${told}`,
    )
  })
}

async function act(random: Random, purchase: Purchase): Promise<void> {
  if (random.chance(0.6)) {
    const fault = { path: random.pick(PATHS), kind: random.pick(FAULTS), ms: random.integer(1, 90_000) }
    await account.control('/faults', fault)
    purchase.story.push(`fault ${JSON.stringify(fault)}`)
  }
  const chance = random.next()
  if (purchase.verdict !== undefined) await pass(purchase, random.integer(1, 30 * MINUTE_MS))
  else if (purchase.sentMs === undefined) await send(purchase)
  else if (chance < 0.2) await pass(purchase, random.integer(1, 10 * MINUTE_MS))
  else if (chance < 0.3) await loseOrder(purchase)
  else await lookAt(purchase)
  await account.control('/faults/clear')
}

/** The only call that may charge: an order sends it once. */
async function send(purchase: Purchase): Promise<void> {
  purchase.sentMs = nowMs
  const response = await account.provider.charge(purchase.request)
  purchase.story.push(`charge: ${JSON.stringify(response, text)}`)
  if (response.outcome === 'not_begun') purchase.sentMs = undefined
  else if (response.outcome === 'withheld') await lookAt(purchase, response.handle)
  else await conclude(purchase, response)
}

async function lookAt(purchase: Purchase, handle?: string): Promise<void> {
  const response = await account.provider.lookUp({ ...purchase.request, handle: handle ?? null })
  purchase.story.push(`look-up: ${JSON.stringify(response, text)}`)
  await conclude(purchase, response)
}

async function conclude(purchase: Purchase, response: { outcome: string; handle?: string }): Promise<void> {
  const { outcome, handle } = response
  if (outcome === 'not_found') return noteNotFound(purchase)
  purchase.notFoundMs = undefined
  if (outcome === 'authorized') {
    const captured = await account.provider.capture({ ...purchase.request, handle: handle! })
    purchase.story.push(`capture: ${JSON.stringify(captured, text)}`)
    if (captured.outcome !== 'authorized') return conclude(purchase, captured)
  }
  if (outcome === 'succeeded' || outcome === 'failed' || outcome === 'refused') settle(purchase, outcome)
}

/** As the core waits out: twice not found, minutes apart, past every deadline. */
function noteNotFound(purchase: Purchase): void {
  if (nowMs - purchase.sentMs! <= OVER_MS) return
  if (purchase.notFoundMs === undefined) purchase.notFoundMs = nowMs
  else if (nowMs - purchase.notFoundMs >= APART_MS) settle(purchase, 'refused')
}

/** A backup is restored: the order is forgotten, and made anew only after the account was listed. */
async function loseOrder(purchase: Purchase): Promise<void> {
  purchase.story.push('the order is lost')
  await pass(purchase, OVER_MS)
  const found: Movement[] = []
  try {
    for await (const one of account.provider.list(new Date(START_MS + purchase.beganMs - MINUTE_MS).toISOString()))
      if (one.key === purchase.request.key) found.push(one)
  } catch {
    purchase.story.push('the list broke off')
    return
  }
  purchase.request = chargeRequest(purchase.request.token, { key: purchase.request.key })
  purchase.story.push(`listed: ${found.length}`)
  if (found.length > 0) return lookAt(purchase, found[0]!.transactionId)
  purchase.sentMs = undefined
}

function settle(purchase: Purchase, verdict: Final): void {
  const { story } = purchase
  assert.ok(
    purchase.verdict === undefined || purchase.verdict === verdict,
    `${purchase.verdict} became ${verdict}\n${story.join('\n')}`,
  )
  purchase.verdict = verdict
}

async function pass(purchase: Purchase, ms: number): Promise<void> {
  purchase.story.push(`${ms} ms pass`)
  nowMs += ms
  await account.control('/clock', { advance_ms: ms })
}

/** As settling does it. A payment that was never sent needs no end. */
async function comeToRest(purchase: Purchase): Promise<void> {
  if (purchase.sentMs === undefined && purchase.verdict === undefined) return settle(purchase, 'refused')
  for (let turn = 0; turn < 20 && purchase.verdict === undefined; turn++) {
    await lookAt(purchase)
    if (purchase.verdict === undefined) await pass(purchase, 60 * MINUTE_MS)
  }
  assert.ok(purchase.verdict, `it does not come to rest\n${purchase.story.join('\n')}`)
}

async function charges({ request }: Purchase): Promise<number> {
  return (await account.ledger()).filter(({ type, key }) => type === 'charge' && key === request.key).length
}

const text = (name: string, value: unknown) =>
  name === 'details' || name === 'failedAttempts' ? undefined : typeof value === 'bigint' ? String(value) : value

/** A Primer account: the simulator and the adapter for it. */
async function openPrimerAccount(options: Partial<PrimerSimulatorOptions>) {
  const simulator = await openPrimerSimulator(options)
  const account = { apiKey: PRIMER_KEY, apiUrl: simulator.url, merchantId: 'primer-1', isSandbox: true }
  const provider = new PrimerProvider({ ...account, clock: new HandClock() })
  return {
    ...simulator,
    ...charging(provider),
    provider,
    cleanUp: async () => {
      provider.close()
      await simulator.cleanUp()
    },
  }
}
