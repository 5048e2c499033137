// Objects that Stripe does not serve: an import goes on without them, and an outage is not taken for one of them.
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { dryRun } from '../../../../src/data/ingest/stripe/dry-run.ts'
import { StripeSource } from '../../../../src/data/ingest/stripe/source.ts'
import { type Clock, systemClock } from '../../../../src/lib/clock.ts'
import type { Project } from '../../../support/imports.ts'
import { savedCard, silent, TEST_KEY } from '../../../support/simulators.ts'
import { accountSums, differences, MERCHANT, openStripeImports, storedSums } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
afterEach(() => all.simulator.control('/faults/clear'))

const recurring = { interval: 'month' } as const
const { id: product } = await all.stripe.products.create({ name: 'Plan' })
const { customer, payment_method } = await savedCard(all.stripe)
const plain = await all.stripe.prices.create({ product, currency: 'usd', unit_amount: 900, recurring })
const tiered = async () =>
  all.stripe.prices.create({
    ...{ product, currency: 'usd', recurring, billing_scheme: 'tiered', tiers_mode: 'volume' },
    tiers: [{ up_to: 'inf', unit_amount: 100 }],
  })
const subscribe = async ({ id }: { id: string }, more = {}) => {
  const given = { customer, items: [{ price: id }], default_payment_method: payment_method }
  return (await all.stripe.subscriptions.create({ ...given, ...more })).id
}
// A price in tiers is read alone.
const [broken, another] = [await tiered(), await tiered()]
const subscriptions: string[] = []
for (const price of [plain, broken, broken, another]) subscriptions.push(await subscribe(price))

const fail = (path: string) =>
  all.simulator.control('/faults', { method: 'GET', path, kind: 'error_before', times: 1_000_000 })

const stored = async ({ id }: Project) =>
  (await all.imports.rows('select id from subscriptions where project_id = $1', [id])).map((row) => row.id!).sort()

test('an import names objects that refer to one that Stripe does not serve, and imports the others', async () => {
  await fail(`/v1/prices/${broken.id}`)
  const project = await all.imports.project()
  const state = await all.run(project, {}, { longestPauseMs: 1 })
  const reason = `cannot be read whole at Stripe (/v1/prices/${broken.id}: returned status 500)`
  assert.equal(state.status, 'done')
  const left = subscriptions.slice(1, 3)
  assert.deepEqual(state.tally.rejects.toSorted(), left.map((id) => `${id} ${reason}`).sort())
  assert.deepEqual(await stored(project), subscriptions.filter((id) => !left.includes(id)).sort())
  assert.deepEqual(differences(state), [])
  assert.deepEqual(await storedSums(all, project), await accountSums(all.stripe))
})

test('a dry run names them, too', async (t) => {
  await fail(`/v1/prices/${broken.id}`)
  const project = await all.imports.project()
  const { signal } = new AbortController()
  const sleep: Clock['sleep'] = () => systemClock.sleep(0)
  const clock = { ...systemClock, sleep }
  const source = new StripeSource({ secretKey: TEST_KEY, apiUrl: all.simulator.url, clock, signal })
  t.after(() => source.close())
  const target = {
    ...{ organizationId: project.organizationId, projectId: project.id },
    ...{ merchantId: MERCHANT, externalIdKey: undefined },
  }
  const options = { since: undefined, signal, onProgress() {}, onRejected() {} }
  const { rejects } = await dryRun({ db: all.imports.db, log: silent as never }, source, target, options)
  assert.deepEqual(rejects.map((line) => line.split(' ')[0]).sort(), subscriptions.slice(1, 3).sort())
})

test('after an outage in the midst of a batch it is read again, and counted once', async () => {
  await fail('/v1/prices/[^/]+')
  const project = await all.imports.project()
  await assert.rejects(all.run(project, {}, { longestPauseMs: 1 }), /Stripe could not be read/)
  await all.simulator.control('/faults/clear')
  const state = await all.run(project)
  assert.deepEqual([state.status, state.tally.rejects, differences(state)], ['done', [], []])
  assert.deepEqual(await stored(project), subscriptions.toSorted())
})

test('changes are stored, except of an object that refers to one that Stripe does not serve, which is read again', async () => {
  const project = await all.imports.project()
  await all.run(project)
  await fail(`/v1/prices/${broken.id}`)
  // A payment would have its subscription stored, too.
  const trial = { trial_period_days: 7 }
  const later = [await subscribe(plain, trial), await subscribe(broken, trial), await subscribe(plain, trial)]
  const change = async () => (await stored(project)).filter((id) => later.includes(id))
  await assert.rejects(all.run(project, { follow: true }, { longestPauseMs: 1 }), /Stripe could not be read/)
  assert.deepEqual(await change(), later.toSpliced(1, 1).sort())
  await all.simulator.control('/faults/clear')
  await all.run(project)
  assert.deepEqual(await change(), later.toSorted())
})
