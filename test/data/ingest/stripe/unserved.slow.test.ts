// Objects that Stripe does not serve: an import goes on without them, and an outage is not taken for one of them.
import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { dryRun } from '../../../../src/data/ingest/stripe/dry-run.ts'
import { StripeSource, Unreachable } from '../../../../src/data/ingest/stripe/source.ts'
import { forEachServed } from '../../../../src/data/ingest/stripe/unserved.ts'
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

const fail = (path: string, times = 1_000_000) =>
  all.simulator.control('/faults', { method: 'GET', path, kind: 'error_before', times })

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
  const error = /Stripe could not be read for some minutes \(it returned status 500 for \S+, but serves other objects\)/
  await assert.rejects(all.run(project, { follow: true }, { longestPauseMs: 1 }), error)
  assert.deepEqual(await change(), later.toSpliced(1, 1).sort())
  await all.simulator.control('/faults/clear')
  await all.run(project)
  assert.deepEqual(await change(), later.toSorted())
})

test('an object whose call succeeds again by the time that the list is served is imported', async () => {
  // The calls for all objects, and the first one for this one alone.
  await fail(`/v1/prices/${broken.id}`, 11)
  const project = await all.imports.project()
  const state = await all.run(project, {}, { longestPauseMs: 1 })
  assert.deepEqual([state.status, state.tally.rejects], ['done', []])
  const found = (await stored(project)).filter((id) => subscriptions.includes(id))
  assert.deepEqual(found, subscriptions.toSorted())
})

/** Imports a project up to the changes since the import began, which are these new subscriptions. */
async function changesOf(prices: { id: string }[]): Promise<{ project: Project; added: string[] }> {
  const project = await all.imports.project()
  const controller = new AbortController()
  const onProgress = ({ step }: { step: string }) => void (step === 'events' && controller.abort())
  await assert.rejects(all.run(project, {}, { signal: controller.signal, onProgress }))
  const added: string[] = []
  for (const price of prices) added.push(await subscribe(price, { trial_period_days: 7 }))
  return { project, added }
}

test('after an outage in the midst of the changes they are read again', async () => {
  const { project, added } = await changesOf([plain, broken, another])
  await fail('/v1/prices/[^/]+')
  await assert.rejects(all.run(project, {}, { longestPauseMs: 1 }), /Stripe could not be read/)
  await all.simulator.control('/faults/clear')
  const { status, tally } = await all.run(project)
  assert.deepEqual([status, tally.rejects], ['done', []])
  const found = (await stored(project)).filter((id) => added.includes(id))
  assert.deepEqual(found, added.toSorted())
})

test('changed objects that refer to different ones that Stripe does not serve are named with their reasons', async () => {
  const [one, other] = [await tiered(), await tiered()]
  const { project, added } = await changesOf([one, plain, other])
  await fail(`/v1/prices/(${one.id}|${other.id})`)
  const { status, tally } = await all.run(project, {}, { longestPauseMs: 1 })
  assert.equal(status, 'done')
  const reason = (n: number, { id }: { id: string }) => `${added[n]} cannot be read whole at Stripe (/v1/prices/${id}`
  const reasons = tally.rejects.map((line) => line.split(':')[0])
  assert.deepEqual(reasons.toSorted(), [reason(0, one), reason(2, other)].sort())
})

test('an object that is rejected is named once, although the others are read again', async () => {
  const odd = await all.stripe.prices.create({ product, currency: 'ugx', unit_amount: 900, recurring })
  // The list begins with the newest.
  const id = await subscribe(odd, { trial_period_days: 7 })
  await fail(`/v1/prices/${broken.id}`)
  const lines: string[] = []
  let step = ''
  const more = {
    onProgress: (state: { step: string }) => {
      step = state.step
    },
    // What has changed since the import began is named again.
    onRejected: (line: string) => void (step !== 'events' && lines.push(line)),
  }
  const { tally } = await all.run(await all.imports.project(), {}, { longestPauseMs: 1, ...more })
  assert.equal(lines.filter((line) => line.startsWith(id)).length, 1, lines.join('\n'))
  assert.deepEqual(lines.toSorted(), tally.rejects.toSorted())
})

test('the first object may fail by another call than the whole batch, which reads what the last one needs before', async () => {
  const source = { page: async () => ({ data: [], hasMore: false }) }
  const work = async (objects: string[]) => {
    const failing = ['product', 'price'].findLast((one) => objects.includes(one))
    if (failing) throw new Unreachable('returned status 500', `/v1/${failing}s`, failing)
  }
  const left = await forEachServed(source, { path: '/v1/subscriptions' }, ['product', 'nothing', 'price'], work)
  assert.deepEqual(
    left.map(({ object, error }) => [object, error.call]),
    [
      ['product', 'product'],
      ['price', 'price'],
    ],
  )
})
