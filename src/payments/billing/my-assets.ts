// What a customer owns: the linked profile's subscriptions, one-off purchases, and the consumables that charges granted.
import type { FastifyInstance } from 'fastify'
import { moveOf } from '../../core/records/payment-move.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { JOINS, subscription } from '../../core/records/subscription.ts'
import { sendJson } from '../../lib/http/send-json.ts'
import type { JsonBytes } from '../../lib/json/buffer.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Statement } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { decimal, instant, shape, text } from '../../lib/shape/shape.ts'
import { externalId } from './body.ts'
import { balanceOut, balancesOf } from './credits/balance.ts'
import { consumable } from './ledger/consumable.ts'
import { describe, lineOf, ok, type Post } from './route.ts'

const myAssetsIn = Type.Named('MyAssetsIn', { external_id: externalId })

const oneoff = shape('OneOffPurchase', 'o', {
  oneoff_id: text('Identifier of the purchase, `meta_oneoff_id` of the report.'),
  order_id: text('Order of the payment (UUID).'),
  amount: decimal('Amount that was paid, in major units.', { example: 10.5 }),
  amount_refunded: decimal('Sum of its refunds, in major units.', { example: 0.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  purchased_at: instant('When it was paid.'),
})

const myAssetsOut = Type.Object(
  {
    subscriptions: Type.Array(subscription.schema, {
      description: 'Subscriptions of the profile that the customer is linked to, newest first.',
    }),
    oneoffs: Type.Array(oneoff.schema, {
      description: 'One-off purchases that were imported as payments with `meta_oneoff_id`, newest first.',
    }),
    consumables: Type.Array(consumable.schema, { description: 'What charges granted, newest first.' }),
    credits: Type.Optional(
      Type.Array(balanceOut, {
        description: 'Balances of credits, by unit. Left out if the organization has no unit of credits.',
      }),
    ),
  },
  { title: 'MyAssets' },
)

export function myAssets(app: FastifyInstance, { db }: { db: Db }): void {
  const schema = {
    ...describe({
      operationId: 'listMyAssets',
      summary: 'List what a customer owns',
      description: 'For an unknown customer all groups are empty.',
    }),
    body: myAssetsIn,
    ...ok('What the customer owns.', myAssetsOut),
  }
  app.post<Post<{ external_id: string }>>(
    '/my_assets',
    { schema, config: { scope: 'report' } },
    async ({ body, organizationId }, reply) => {
      const customer = [organizationId, body.external_id]
      const [credits, json] = await db.fair(lineOf(organizationId), WEIGHT, async () => {
        const balances = (await hasUnits(db, organizationId))
          ? JSON.stringify(await balancesOf(db.query, organizationId, body.external_id))
          : undefined
        const lists = [
          subscription.writeList(await db.read(SUBSCRIPTIONS, customer), '{"subscriptions":[', ''),
          oneoff.writeList(await db.read(ONEOFFS, customer), '],"oneoffs":[', ''),
          consumable.writeList(await db.read(CONSUMABLES, customer), '],"consumables":[', ']'),
        ]
        return [balances, lists] as const
      })
      const end = credits === undefined ? '}' : `,"credits":${credits}}`
      return sendJson(reply, Buffer.concat([...json.map(taken), Buffer.from(end)]))
    },
  )
}

async function hasUnits(db: Db, organizationId: string): Promise<boolean> {
  return (await db.read(FIND_UNIT, [organizationId])).length > 0
}

const FIND_UNIT: Statement = {
  name: 'find credit unit of organization',
  text: 'select unit from credit_units where organization_id = $1 limit 1',
}

/** The bytes of a list; the memory of its rows is free again. */
function taken(json: JsonBytes): Buffer {
  const bytes = Buffer.from(json.written())
  json.free()
  return bytes
}

// In turns: a short read, for few customers have bought more than a page.
const WEIGHT = 1

const SUBSCRIPTIONS: Statement = {
  name: 'list subscriptions of a customer',
  text: `
    select ${subscription.columns}
    from customers c join subscriptions s on s.project_id = c.project_id and s.profile_id = c.profile_id ${JOINS}
    where c.organization_id = $1 and c.external_id = $2
    order by s.created_at desc, s.id desc`,
}

// Refunds are separate rows, with a positive amount, and so is a refund that failed after it had succeeded.
const ONEOFFS: Statement = {
  name: 'list one-off purchases',
  text: `
    select ${oneoff.columns} from (
      select p.meta_oneoff_id as oneoff_id, p.order_id, p.amount, p.currency_code, ${paidAt('p')} as purchased_at,
        round(coalesce((
          select sum(case ${moveOf('r')} when 'refund' then r.amount when 'refund_failed' then -r.amount end)
          from report_transactions r where r.organization_id = $1 and r.order_id = p.order_id
        ), 0), scale(p.amount)) as amount_refunded
      from report_transactions p
      where p.organization_id = $1 and p.external_id = $2 and p.meta_oneoff_id is not null
        and p.psp_transaction_type = 'sale' and p.status = 'succeeded'
    ) o order by o.purchased_at desc`,
}

const CONSUMABLES: Statement = {
  name: 'list consumables',
  text: `select ${consumable.columns} from consumables c where c.organization_id = $1 and c.external_id = $2
         order by c.granted_at desc, c.consumable_id desc`,
}
