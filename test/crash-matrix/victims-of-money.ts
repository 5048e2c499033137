// Charges and refunds whose outcome is unknown.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { until } from '../support/time.ts'
import type { Ground, Victim } from './victim.ts'

/** Charges successfully, so that the failing charges of many victims do not open the circuit of the account. */
async function keepCircuitClosed({ shop }: Ground): Promise<void> {
  const user = await shop.customer({ token: 'pm_card_visa' })
  const charge = async () => (await shop.charge(user, { idempotency_key: randomUUID() })).status === 200
  await until('the circuit to be closed', charge)
}

/** A charge or refund whose outcome is unknown, and whose look is due. */
export async function unknownOutcome(
  ground: Ground,
  token: string,
  kind: 'charge' | 'refund',
  end: string,
): Promise<Victim> {
  const { billing, shop } = ground
  await keepCircuitClosed(ground)
  const user = await shop.customer({ token, profileId: `pro_${randomUUID()}` })
  const charge = () => shop.charge(user, { idempotency_key: 'k' })
  const first = await charge()
  const refund = () => shop.refund(user, first.body.order_id, { idempotency_key: 'r' })
  if (kind === 'refund') assert.equal((await refund()).body.refund_status, 'processing')
  /** Ends its lease. */
  const becomeDue = async () => {
    for (const table of ['orders', 'refunds'])
      await billing.db.query(
        `update ${table} set lease_until = null, next_look_at = db_clock() where external_id = $1 and status = 'processing'`,
        [user],
      )
  }
  await becomeDue()
  return {
    subject: { user, since: '2020-01-01T00:00:00Z' },
    afterKill: becomeDue,
    async checkResult() {
      const { body } = await (kind === 'charge' ? charge() : refund())
      assert.equal(kind === 'charge' ? body.checkout_status : body.refund_status, end, JSON.stringify(body))
      const id = kind === 'charge' ? body.order_id : body.refund_id
      const moved = end === 'succeeded' ? 1 : 0
      assert.equal((await billing.ledger(id)).length, moved, 'movements')
      const consumables = await shop.consumables(user)
      assert.equal(consumables.length, kind === 'refund' ? 1 : moved, 'consumables')
      if (kind === 'refund') assert.equal(consumables[0].is_active, end !== 'succeeded')
      const rows = await shop.report({ order_id: first.body.order_id })
      assert.equal(rows.length, kind === 'refund' ? 2 : moved, 'rows of the report')
      const events = await billing.db.query('select type from events where object_id = $1', [id])
      assert.deepEqual(
        events.map(({ type }) => type),
        [`${kind}.${end}`],
      )
    },
  }
}
