// Automatic top-ups of customers: set, remove and list.
import type { JsonObject } from '../../lib/json/read.ts'
import { Type } from '../../lib/shape/schema.ts'
import { removeTopUp, setTopUp, topUpFrom, topUpIn, topUpName, topUpRule } from '../../payments/billing/top-up/rule.ts'
import { ofCustomer, PATH, TAG } from './credit-units.ts'
import { equals, list, ofOrganization } from './list.ts'
import { change } from './operation.ts'

const set = change({
  id: 'setCustomerTopUp',
  right: 'manage',
  command: 'credits top-up set',
  method: 'PUT',
  path: `${PATH}/top-ups`,
  tag: TAG,
  summary: 'Set a customer’s automatic top-up',
  description: 'Setting it again switches it on.',
  body: topUpIn,
  response: topUpRule.schema,
  checkInput: ({ body, exact = body }) => void topUpFrom(exact as JsonObject),
  change: (query, { params, body, exact = body }) =>
    setTopUp(query, params.organization_id, topUpFrom(exact as JsonObject)),
})

const remove = change({
  id: 'removeCustomerTopUp',
  right: 'manage',
  command: 'credits top-up remove',
  method: 'POST',
  path: `${PATH}/top-ups/remove`,
  tag: TAG,
  summary: 'Remove a customer’s automatic top-up',
  body: topUpName,
  response: Type.Object({}, { title: 'TopUpRemoved' }),
  async change(query, { params, body, exact = body }) {
    return removeTopUp(query, params.organization_id, exact as JsonObject)
  },
})

export const creditTopUps = [
  list({
    id: 'listOrganizationTopUps',
    right: 'people',
    command: 'credits top-up list',
    columns: ['external_id', 'unit', 'status', 'off_reason', 'below', 'amount', 'currency_code', 'grants'],
    path: `${PATH}/top-ups`,
    tag: TAG,
    summary: 'List automatic top-ups',
    shape: topUpRule,
    from: 'credit_top_ups t',
    at: 't.created_at',
    // A customer's id may be too long for a cursor.
    key: `md5(t.external_id || ' ' || t.unit)`,
    filters: {
      ...ofCustomer('t'),
      status: equals('t.status', 'Only those that are `on` or `off`.', { enum: ['on', 'off'] }),
    },
    ...ofOrganization('t', `t.status <> 'removed'`),
  }),
  set,
  remove,
] as const
