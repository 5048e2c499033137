// Seeded chaos at Stripe's API: calls that get lost, come late or end with errors, keys that are forgotten, orders
// that are lost. Whatever happens, one purchase is charged at most once, and an outcome that was final stays true.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openRandom, type Random } from '../../../../src/lib/seeded-random.ts'
import type { ChargeRequest } from '../../../../src/payments/providers/provider.ts'
import { savedCard } from '../../../support/simulators.ts'
import { chargeRequest } from '../charging.ts'
import { openStripeAccount } from './stripe-account.ts'

// CHAOS_SEEDS is how many seeds run, CHAOS_FIRST the first of them: a run of thousands is made of several.
const SEEDS = Number(process.env['CHAOS_SEEDS'] ?? 60)
const FIRST = Number(process.env['CHAOS_FIRST'] ?? 1)
const ACTIONS = 14
const HOUR_MS = 3_600_000

const CARDS = [
  'pm_card_visa',
  'pm_card_visa',
  'pm_card_chargeDeclined',
  'pm_card_authenticationRequired',
  'pm_sim_processing_1800000ms',
]
const FAULTS = ['drop_before', 'drop_after', 'error_before', 'error_after', 'busy', 'locked', 'in_use', 'late']
const PATHS = ['.*', '/v1/payment_intents', '/v1/payment_intents/[^/]+/confirm', '/v1/payment_intents/[^/]+/cancel']

const account = await openStripeAccount()
after(() => account.cleanUp())

/** One purchase as the core keeps it: the handle that it stored, and the verdict once there is one. */
interface Purchase {
  request: ChargeRequest
  verdict: 'succeeded' | 'failed' | 'refused' | undefined
  story: string[]
}

for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
  test(`seed ${seed}: charged at most once, and what was final stays so`, async () => {
    const random = openRandom(seed)
    const purchase = await begin(random)
    for (let n = 0; n < ACTIONS; n++) await act(random, purchase)
    await account.control('/faults/clear')
    await comeToRest(purchase)
    const before = await charges(purchase)
    // What was on its way has long arrived.
    await account.control('/clock', { advance_ms: 72 * HOUR_MS })
    const told = purchase.story.join('\n')
    assert.equal(await charges(purchase), before, told)
    assert.equal(before, purchase.verdict === 'succeeded' ? 1 : 0, `${purchase.verdict}, ${before} charges\n${told}`)
    if (purchase.request.handle !== null) {
      const { outcome } = await account.provider.lookUp(purchase.request)
      assert.equal(outcome, purchase.verdict, told)
    }
  })
}

async function begin(random: Random): Promise<Purchase> {
  const { customer, payment_method } = await savedCard(account.stripe, random.pick(CARDS))
  const providerCustomer = random.chance(0.5) ? customer : null
  return { request: chargeRequest(payment_method, { providerCustomer }), verdict: undefined, story: [] }
}

async function act(random: Random, purchase: Purchase): Promise<void> {
  if (random.chance(0.6)) {
    const fault = { path: random.pick(PATHS), kind: random.pick(FAULTS), ms: random.integer(1, 2 * HOUR_MS) }
    await account.control('/faults', fault)
    purchase.story.push(`fault ${JSON.stringify(fault)}`)
  }
  const { request } = purchase
  const chance = random.next()
  if (chance < 0.1) await pass(purchase, random.integer(1, 30 * HOUR_MS))
  else if (chance < 0.2) await loseOrder(purchase)
  else if (request.handle === null) {
    if (purchase.verdict === undefined) await prepare(purchase)
  } else if (chance < 0.6)
    await note(purchase, 'confirm', account.provider.confirm({ ...request, handle: request.handle }))
  else if (chance < 0.8) await note(purchase, 'look-up', account.provider.lookUp(request))
  else await note(purchase, 'refuse', account.provider.refuse(request))
  await account.control('/faults/clear')
}

async function prepare(purchase: Purchase): Promise<void> {
  const prepared = await account.provider.prepare(purchase.request)
  assert.notEqual(prepared.outcome, 'conflict', purchase.story.join('\n'))
  purchase.story.push(`prepare: ${JSON.stringify(prepared, text)}`)
  if (prepared.outcome === 'prepared') purchase.request.handle = prepared.handle
  // Rejected, or adopted: the verdict of the payment that is there.
  else if (prepared.outcome === 'succeeded' || prepared.outcome === 'failed') settle(purchase, prepared.outcome)
}

/** A backup is restored: the order is forgotten, and made anew only after the list was asked for the key. */
async function loseOrder(purchase: Purchase): Promise<void> {
  purchase.story.push('the order is lost')
  const lost = chargeRequest(purchase.request.token, { key: purchase.request.key })
  const since = new Date(Date.now() - HOUR_MS).toISOString()
  const found = await account.provider.findByKey({ ...lost, cards: [lost] }, { since })
  purchase.story.push(`find by key: ${JSON.stringify(found, text)}`)
  // Not known: the order stays as it was, as the core does not go on without an outcome.
  if (found.outcome === 'unknown') return
  const wasOver = purchase.verdict
  purchase.request = lost
  if (found.outcome === 'prepared') lost.handle = found.handle
  if (found.outcome === 'succeeded' || found.outcome === 'failed') settle(purchase, found.outcome)
  // A refused purchase may be begun again by its client.
  else if (wasOver === 'refused') purchase.verdict = undefined
}

async function note(purchase: Purchase, what: string, call: Promise<{ outcome: string }>): Promise<void> {
  const { outcome } = await call
  purchase.story.push(`${what}: ${JSON.stringify(await call, text)}`)
  if (outcome === 'succeeded' || outcome === 'failed' || outcome === 'refused') settle(purchase, outcome)
}

function settle(purchase: Purchase, verdict: 'succeeded' | 'failed' | 'refused'): void {
  assert.ok(
    purchase.verdict === undefined || purchase.verdict === verdict,
    `${purchase.verdict} became ${verdict}\n${purchase.story.join('\n')}`,
  )
  purchase.verdict = verdict
}

async function pass(purchase: Purchase, ms: number): Promise<void> {
  purchase.story.push(`${ms} ms pass`)
  await account.control('/clock', { advance_ms: ms })
}

/** As settling does it: looked up, and refused where nothing has moved. Without a handle nothing was confirmed. */
async function comeToRest(purchase: Purchase): Promise<void> {
  for (let turn = 0; turn < 20 && purchase.verdict === undefined; turn++) {
    const { request } = purchase
    if (request.handle === null) return settle(purchase, 'refused')
    await note(purchase, 'look-up', account.provider.lookUp(request))
    if (purchase.verdict === undefined) await note(purchase, 'refuse', account.provider.refuse(request))
    if (purchase.verdict === undefined) await pass(purchase, HOUR_MS)
  }
  assert.ok(purchase.verdict, `it does not come to rest\n${purchase.story.join('\n')}`)
}

async function charges({ request }: Purchase): Promise<number> {
  const movements = await account.ledger()
  return movements.filter(({ type, metadata }) => type === 'charge' && metadata['tundish_key'] === request.key).length
}

const text = (name: string, value: unknown) =>
  name === 'details' ? undefined : typeof value === 'bigint' ? String(value) : value
