// A Stripe account to import, and customers to erase at Stripe.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { erase } from '../../src/core/erasure/erasure.ts'
import { setOrganization } from '../../src/core/tenants/tenants.ts'
import { FIRST_STEP } from '../../src/data/ingest/stripe/run.ts'
import { beginState, findState, type ImportName } from '../../src/data/ingest/stripe/state.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { connectAccount, disconnectAccount } from '../../src/payments/providers/connect.ts'
import { differences, storedRecords } from '../data/ingest/stripe/stripe-imports.ts'
import { forgetOrders } from '../payments/billing/restored.ts'
import type { Organization } from '../support/billing.ts'
import { savedCard, TEST_KEY } from '../support/simulators.ts'
import type { Ground, Victim } from './victim.ts'
import { ACTOR, doWork, type Subject } from './works.ts'

const MERCHANT = 'stripe-test'

/** An organization with the Stripe account connected. */
async function connected({ billing }: Ground): Promise<Organization> {
  const shop = await billing.organization()
  const { app } = billing.server
  const context = { ...app, stripeApiUrl: app.config.stripeApiUrl, deadlineMs: app.config.providerTimeoutMs }
  const name = { organizationId: shop.id, psp: 'stripe', merchantId: MERCHANT }
  await connectAccount(context, name, { secretKey: TEST_KEY, isSandbox: true })
  return shop
}

/** An import for the background work of a server. */
async function begun(ground: Ground): Promise<{ name: ImportName; subject: Subject }> {
  const { id, projectId } = await connected(ground)
  const name = { organizationId: id, projectId, merchantId: MERCHANT }
  await beginState(ground.billing.db.query, name, {}, { background: true, firstStep: FIRST_STEP })
  return { name, subject: { project: projectId } }
}

const recordsOf = (db: Db, { organizationId, projectId }: ImportName) => storedRecords(db, organizationId, projectId)

/** The records that an undisturbed import stores. */
const wholes = new WeakMap<Ground, Promise<Awaited<ReturnType<typeof recordsOf>>>>()

async function importWhole(ground: Ground) {
  const { name, subject } = await begun(ground)
  await doWork('stripe import', ground.billing.server.env, subject)
  return recordsOf(ground.billing.db, name)
}

export async function unimportedAccount(ground: Ground): Promise<Victim> {
  const { db } = ground.billing
  if (!wholes.has(ground)) wholes.set(ground, importWhole(ground))
  const whole = await wholes.get(ground)!
  const { name, subject } = await begun(ground)
  return {
    subject,
    async afterKill() {
      const known = new Set(whole.map((row) => `${row.kind} ${row.id}`))
      const strange = (await recordsOf(db, name)).filter((row) => !known.has(`${row.kind} ${row.id}`))
      assert.deepEqual(strange, [], 'rows that the account does not have')
    },
    async checkResult() {
      const state = (await findState(db.query, name))!
      assert.deepEqual([state.status, state.error, differences(state)], ['done', null, []])
      assert.ok(whole.length > 0)
      assert.deepEqual(await recordsOf(db, name), whole)
    },
  }
}

/** A customer at Stripe whose profile is erased here. */
export async function unerasedAtProvider(ground: Ground): Promise<Victim> {
  const { billing, stripe } = ground
  const { db, server } = billing
  const shop = await connected(ground)
  await setOrganization(db, shop.id, { eraseAtProvider: 'on' })
  const client = stripe.client()
  const card = await savedCard(client)
  const profileId = `pro_${randomUUID()}`
  await shop.customer({ token: card.payment_method, psp: 'stripe', merchantId: MERCHANT, profileId })
  await erase({ ...server.app, erasureLedger: server.ledger }, ACTOR, shop.projectId, [profileId])
  const queued = () =>
    db.query('select done_at is not null as done, why from provider_erasures where profile_id = $1', [profileId])
  assert.deepEqual(await queued(), [{ done: 'f', why: null }])
  return {
    subject: { profile: profileId },
    async afterKill() {
      // Ends the lease of the killed process.
      await db.query(
        'update provider_erasures set next_attempt_at = db_clock() where profile_id = $1 and done_at is null',
        [profileId],
      )
    },
    async checkResult() {
      assert.deepEqual(await queued(), [{ done: 't', why: null }])
      const there = (await client.customers.retrieve(card.customer)) as { email?: string | null; name?: string | null }
      assert.deepEqual([there.email || null, there.name || null], [null, null])
      assert.deepEqual((await client.customers.listPaymentMethods(card.customer)).data, [])
    },
  }
}

/** A successful charge that a restored backup does not have: the listing stores it, and its key then has its outcome. */
export async function lostCharge(ground: Ground): Promise<Victim> {
  const { billing, stripe } = ground
  const shop = await connected(ground)
  const card = await savedCard(stripe.client())
  const user = await shop.customer({ token: card.payment_method, psp: 'stripe', merchantId: MERCHANT })
  const charge = () => shop.charge(user, { idempotency_key: 'k' })
  const first = await charge()
  await forgetOrders(billing.db, [first.body.order_id])
  const stored = () => billing.db.query('select state from lost_movements where organization_id = $1', [shop.id])
  return {
    subject: { user, since: '2020-01-01T00:00:00Z' },
    async checkResult() {
      assert.equal((await stored()).length, 1, 'lost movements')
      const again = await charge()
      assert.equal(again.body.checkout_status, 'succeeded', again.text)
      assert.equal((await charge()).body.order_id, again.body.order_id)
      const moved = await stripe.ledger()
      const ofOrder = ({ metadata }: { metadata: Record<string, string> }) =>
        metadata['tundish_order'] === first.body.order_id || metadata['tundish_order'] === again.body.order_id
      assert.equal(moved.filter(ofOrder).length, 1, 'movements')
      assert.equal((await shop.report({ order_id: again.body.order_id })).length, 1, 'rows of the report')
      assert.equal((await shop.consumables(user)).length, 1, 'consumables')
    },
    // A reconciliation lists each account that is connected: the next victim's would list this one too.
    async remove() {
      await disconnectAccount(billing.db.query, { organizationId: shop.id, psp: 'stripe', merchantId: MERCHANT })
    },
  }
}
