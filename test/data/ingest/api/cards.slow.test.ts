// A person with cards at Stripe and at Primer moves here with `tundish import api`: each card is charged here, at the account that has it.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { addPayment } from '../../../support/billing.ts'
import { temporaryFolder } from '../../../support/folder.ts'
import { connectPrimer, PRIMER_MERCHANT } from '../../../support/primer-billing.ts'
import { tundishAgain } from '../../../support/resident.ts'
import { openPrimerSimulator } from '../../../support/simulators.ts'
import { MERCHANT, startStripeBilling } from '../../../support/stripe-billing.ts'

// The horizon may lag by a second.
const HORIZON_MS = 1100
const TOKEN = 'tok_visa~mover'

const folder = temporaryFolder()
const primer = await openPrimerSimulator()
const billing = await startStripeBilling({ PRIMER_API_URL: primer.url, RATE_LIMIT: '0' })
const there = await billing.shop('there')
const here: typeof there = await billing.shop('here')
await connectPrimer(billing, there, primer)
after(async () => {
  await billing.stop()
  await primer.cleanUp()
})

const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

async function copy(cards: object[]): Promise<void> {
  await sleep(HORIZON_MS)
  const { url, env } = billing.server
  const given = [
    ...['--from', `${url}/public/v1`, '--key-file', file('key', there.projectKey), '--project', here.projectId],
    ...['--billing-from', `${url}/${there.id}`, '--billing-key-file', file('billing-key', there.key)],
    ...['--customers', file('customers.ndjson', cards.map((card) => JSON.stringify(card)).join('\n'))],
  ]
  const { code, stderr, stdout } = await tundishAgain(['import', 'api', '--json', ...given], env)
  assert.equal(code, 0, stderr)
  assert.deepEqual(JSON.parse(stdout).differences, [])
}

/** Charges twice with one key, and returns the order. */
async function charge(shop: typeof here, user: string): Promise<string> {
  const key = { idempotency_key: `charge ${Math.random()}` }
  const { body, text } = await shop.charge(user, key)
  assert.equal(body.checkout_status, 'succeeded', text)
  assert.equal((await shop.charge(user, key)).body.idempotent_replay, true)
  return String(body.order_id)
}

const atPrimer = async (order: string) =>
  (await primer.ledger()).filter(({ metadata }) => metadata['tundish_order'] === order).length
const atStripe = async (order: string) => (await billing.charged(order)).length

test('the cards of one person are charged here after the move, at Primer and at Stripe', async () => {
  const { external_id: user, payment_method, customer } = await there.customerWithCard('pm_card_visa', 'pro_mover')
  await charge(there, user)
  await primer.control('/tokens', { token: TOKEN, customer: user })
  const paidAt = (psp: string, merchantId: string, token: string) =>
    addPayment(billing.db, there.id, user, { psp, merchantId, token, at: new Date().toISOString() })
  await paidAt('primer', PRIMER_MERCHANT, TOKEN)
  await charge(there, user)
  const cards = [
    { external_id: user, profile_id: 'pro_mover', psp: 'primer', payment_method_token: TOKEN, psp_customer_id: user },
    { external_id: user, psp: 'stripe', payment_method_token: payment_method, psp_customer_id: customer },
  ]
  await copy(cards)
  await connectPrimer(billing, here, primer)

  // The latest payment was made at Primer.
  const first = await charge(here, user)
  assert.deepEqual([await atPrimer(first), await atStripe(first)], [1, 0])

  // Before the switch the person pays at Stripe once more; Stripe tells the second only.
  await sleep(1000)
  await paidAt('stripe', MERCHANT, payment_method)
  await charge(there, user)
  await copy(cards)
  const second = await charge(here, user)
  assert.deepEqual([await atPrimer(second), await atStripe(second)], [0, 1])
})
