// The routes of automatic top-ups: set, remove and list the rules of a customer.
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import type { Audit, Entry } from '../../../core/audit/audit.ts'
import { inAuditTurn } from '../../../core/audit/turns.ts'
import { callerOf, type TrustedProxies } from '../../../lib/http/client-address.ts'
import { sendJson } from '../../../lib/http/send-json.ts'
import type { JsonObject } from '../../../lib/json/read.ts'
import type { Db } from '../../../lib/pg/db.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { type Schema, Type } from '../../../lib/shape/schema.ts'
import { balanceIn } from '../credits/balance.ts'
import { describe, lineOf, ok, type Post } from '../route.ts'
import { removeTopUp, setTopUp, topUpFrom, topUpIn, topUpName, topUpRule, topUpsOf } from './rule.ts'

interface Context {
  db: Db
  audit: Audit
  trustedProxies: TrustedProxies
}

interface Route {
  path: string
  about: Parameters<typeof describe>[0]
  body: Schema
  response: Schema
  change(query: Query, organizationId: string, given: JsonObject): Promise<{ entry: Entry; result: object }>
}

const ROUTES: Route[] = [
  {
    path: 'set',
    about: {
      operationId: 'setTopUp',
      summary: 'Set an automatic top-up',
      description:
        'Charges the customer’s saved card whenever what can be spent falls below a limit, like any custom charge, at most so often a day and a month. Setting it again switches it on.',
    },
    body: topUpIn,
    response: topUpRule.schema,
    change: (query, organizationId, given) => setTopUp(query, organizationId, topUpFrom(given)),
  },
  {
    path: 'remove',
    about: {
      operationId: 'removeTopUp',
      summary: 'Remove an automatic top-up',
      description: 'It no longer charges anything. A charge that has begun ends as any other.',
    },
    body: topUpName,
    response: Type.Named('TopUpRemoved', {}),
    change: removeTopUp,
  },
]

/** Mounts the routes of automatic top-ups. */
export function topUps(app: FastifyInstance, context: Context): void {
  for (const route of ROUTES) mount(app, context, route)
  rules(app, context)
}

function mount(app: FastifyInstance, { db, audit, trustedProxies }: Context, route: Route): void {
  const schema = { ...describe(route.about), body: route.body, ...ok('The rule.', route.response) }
  const config: FastifyContextConfig = { scope: 'charge' }
  app.post(`/credits/top_up/${route.path}`, { schema, config }, async ({ exactBody, organizationId, raw }) => {
    const actor = { kind: 'organization key', id: organizationId, source: callerOf(raw, trustedProxies) } as const
    const { head, result } = await inAuditTurn(db, 'refund', lineOf(organizationId), () =>
      db.tx(async (query, commit) => {
        const done = await route.change(query, organizationId, exactBody as JsonObject)
        return { head: await audit.append({ query, commit }, actor, done.entry), result: done.result }
      }),
    )
    await audit.confirm(head)
    return result
  })
}

const READ_WEIGHT = 1

function rules(app: FastifyInstance, { db }: Context): void {
  const schema = {
    ...describe({
      operationId: 'listTopUps',
      summary: 'List a customer’s automatic top-ups',
      description: 'One for each unit that has one.',
    }),
    body: balanceIn,
    ...ok('The rules.', Type.Object({ top_ups: Type.Array(topUpRule.schema) }, { title: 'TopUps' })),
  }
  app.post<Post<{ external_id: string }>>(
    '/credits/top_up/list',
    { schema, config: { scope: 'report' } },
    async ({ body, organizationId }, reply) => {
      const list = topUpRule.beginList('{"top_ups":[')
      const read = topUpsOf(organizationId, body.external_id)
      await db.fair(lineOf(organizationId), READ_WEIGHT, () => db.read(...read, list.add))
      return sendJson(reply, list.end(']}'))
    },
  )
}
