// tundish profile link --stripe: what is stored comes together by what objects at Stripe name; proposed first, then applied.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { assertExact } from '../../support/figures.ts'
import { line } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { openStripeSimulator, savedCard, TEST_KEY } from '../../support/simulators.ts'
import { openImportCommand } from './import-command.ts'

const simulator = await openStripeSimulator()
const { imports, folder, env, stop } = await openImportCommand({ STRIPE_API_URL: simulator.url })
const project = await imports.project()
writeFileSync(join(folder, 'key'), `${TEST_KEY}\n`)
const bought: { customer: string; subscription: string; charge: string; other: string } = await buyWithoutNames()
const words = ['import', 'stripe', '--org', project.organizationId, '--project', project.id]
const { code, stderr } = await tundishAgain([...words, '--key-file', join(folder, 'key')], env)
assert.deepEqual([code, stderr], [0, ''])
await imports.run(project, [
  line.funnel({ id: 'quiz' }),
  line.profile({ id: 'pro_ada', email: 'ada@example.com' }),
  line.session({ id: 'ses_ada', profile_id: 'pro_ada', funnel_id: 'quiz' }),
])
await nameThem()
after(async () => {
  await stop()
  await simulator.cleanUp()
})

async function buyWithoutNames() {
  const stripe = simulator.client()
  const { customer } = await savedCard(stripe)
  const product = await stripe.products.create({ name: 'Monthly' })
  const recurring = { interval: 'month' } as const
  const price = await stripe.prices.create({ product: product.id, currency: 'usd', unit_amount: 1999, recurring })
  const { id } = await stripe.subscriptions.create({ customer, items: [{ price: price.id }] })
  const charges = await stripe.charges.list({ customer })
  const other = (await stripe.customers.create({})).id
  return { customer, subscription: id, charge: charges.data[0]!.id, other }
}

/** As a shop that adds metadata afterwards, by which nothing was imported. */
async function nameThem() {
  const stripe = simulator.client()
  await stripe.subscriptions.update(bought.subscription, {
    metadata: { tundish_session: 'ses_ada', tundish_experiment: 'exp_gone' },
  })
  await stripe.customers.update(bought.other, { metadata: { tundish_profile: 'pro_nobody' } })
}

const link = (...more: string[]) =>
  tundishAgain(
    ['profile', 'link', '--stripe', '--project', project.id, '--key-file', join(folder, 'key'), ...more],
    env,
  )
const subscription = () =>
  imports.row('select profile_id, session_id, funnel_id from subscriptions where project_id = $1 and id = $2', [
    project.id,
    bought.subscription,
  ])

test('what would be merged and linked is proposed, and nothing is changed', async () => {
  const { code, stdout, stderr } = await link()
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, new RegExp(`^merge   ${bought.customer} into pro_ada \\(by the session in metadata\\)$`, 'm'))
  assert.match(stdout, new RegExp(`^link    subscription ${bought.subscription}: session_id ses_ada$`, 'm'))
  assert.match(stdout, /^wait {4}subscription .*: experiment_id exp_gone is not stored$/m)
  assert.match(stdout, new RegExp(`^wait    profile ${bought.other}: profile_id pro_nobody is not stored$`, 'm'))
  assert.match(stdout, /names of records that are not stored 2\. /)
  assert.match(stdout, /Nothing was changed: add --apply to do it\.\n$/)
  assert.deepEqual(await subscription(), { profile_id: bought.customer, session_id: null, funnel_id: null })
})

test('without a terminal and --yes it is refused, and --yes alone is bad usage', async () => {
  assert.deepEqual([(await link('--apply')).code, (await link('--yes')).code], [2, 2])
  assert.equal((await subscription()).session_id, null)
})

test('applied, all belongs to one profile with an entry in the audit log, and a second time nothing is left to do', async () => {
  const { code, stdout, stderr } = await link('--apply', '--yes', '--json')
  assert.deepEqual([code, stderr], [0, ''])
  const { applied, merges, links } = JSON.parse(stdout)
  assert.deepEqual([applied, merges.length, links.length], [true, 1, 1])
  assert.deepEqual(await subscription(), { profile_id: 'pro_ada', session_id: 'ses_ada', funnel_id: 'quiz' })
  const [paid] = await imports.rows('select session_id from transactions where project_id = $1', [project.id])
  assert.equal(paid!.session_id, 'ses_ada')
  const entries = await imports.rows(`select actor_kind, after from audit_log where action = 'profiles.merged'`)
  assert.deepEqual(entries, [
    { actor_kind: 'tundish', after: JSON.stringify({ from: bought.customer, into: 'pro_ada' }) },
  ])
  await assertExact(imports.db, project.id)
  const again = JSON.parse((await link('--apply', '--yes', '--json')).stdout)
  assert.deepEqual([again.merges, again.links], [[], []])
})

test('a project that does not exist is named', async () => {
  const { code, stderr } = await tundishAgain(['profile', 'link', '--stripe', '--project', 'nowhere'], env)
  assert.deepEqual([code, stderr], [1, 'There is no project "nowhere".\n'])
})
