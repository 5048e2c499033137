// Credits of customers: balances, entries, grants and corrections, and the organization's setting for refunds.
import { creditEntry, ENTRY_ACCOUNTS } from '../../core/records/credit-entry.ts'
import { readDay } from '../../lib/days.ts'
import { jsonOf } from '../../lib/json/json.ts'
import { type JsonObject, numberText } from '../../lib/json/read.ts'
import { Type } from '../../lib/shape/schema.ts'
import type { SentAmount } from '../../payments/billing/credits/amount.ts'
import { bodyOf, responseOf } from '../../payments/billing/credits/api.ts'
import { balancesOf, balancesOut } from '../../payments/billing/credits/balance.ts'
import { callWithin } from '../../payments/billing/credits/calls.ts'
import { askOf, bodies } from '../../payments/billing/credits/requests.ts'
import { dayBegins } from '../../payments/billing/finance/zone.ts'
import { ofCustomer, PATH, TAG, targetOf } from './credit-units.ts'
import { day } from './day-filters.ts'
import { equals, list, ofOrganization } from './list.ts'
import { type Change, change, reading } from './operation.ts'

const externalId = Type.String({ description: 'The customer.', minLength: 1, maxLength: 256 })

const getBalance = reading({
  id: 'getCreditBalances',
  right: 'people',
  command: 'credits balance',
  path: `${PATH}/balance`,
  tag: TAG,
  summary: 'Get a customer’s balances',
  query: Type.Object({ external_id: externalId }),
  columns: ['unit', 'balance', 'held', 'available'],
  response: balancesOut,
  async run({ db }, { params, query }) {
    return jsonOf({ balances: await balancesOf(db.query, params.organization_id, query.external_id) })
  },
})

const listEntries = list({
  id: 'listOrganizationCreditEntries',
  right: 'people',
  command: 'credits entries',
  columns: ['created_at', 'external_id', 'unit', 'cause', 'amount', 'balance', 'reason'],
  path: `${PATH}/entries`,
  tag: TAG,
  summary: 'List entries of the ledger',
  shape: creditEntry,
  from: 'credit_entries e',
  at: 'e.created_at',
  key: 'e.entry_id::text',
  filters: {
    ...ofCustomer('e'),
    account: equals('e.account', 'Only those of this other side.', { enum: ENTRY_ACCOUNTS }),
    day: {
      schema: day('Only those of this day, in the time zone of the finance report.'),
      where: (value) => `e.created_at >= ${dayBegins(value)} and e.created_at < ${dayBegins(`(${value}::date + 1)`)}`,
      param: (value: string) => readDay('day', value),
    },
  },
  ...ofOrganization('e'),
})

function correction<const I extends string>(
  operation: 'grant' | 'adjust',
  about: Pick<Change<I>, 'id' | 'right' | 'summary'>,
) {
  return change({
    ...about,
    command: `credits ${operation}`,
    method: 'POST',
    path: `${PATH}/${operation}`,
    tag: TAG,
    body: bodies[operation],
    response: responseOf(operation),
    checkInput: ({ params, body, exact = body }) => void askOf(operation, params.organization_id, exact as JsonObject),
    async change(query, { params, body, exact = body }) {
      const organization = params.organization_id
      const ask = askOf(operation, organization, exact as JsonObject)
      const reply = await callWithin(query, ask)
      const { external_id, unit, amount } = exact as { external_id: string; unit: string; amount: SentAmount }
      const entry = {
        action: `credits.${operation === 'grant' ? 'granted' : 'adjusted'}`,
        target: targetOf(organization, `customer ${external_id}`),
        after: { unit, amount: numberText(amount), entry_id: reply.entryId, replay: reply.isReplay },
      }
      return { entry, result: bodyOf(operation, reply) }
    },
  })
}

const setCredits = change({
  id: 'setCredits',
  right: 'manage',
  command: 'credits set',
  method: 'PATCH',
  path: PATH,
  tag: TAG,
  summary: 'Change how an organization’s credits follow refunds',
  body: Type.Named('CreditSettings', {
    debt: Type.Boolean({
      description: 'Whether a refund or dispute makes a debt of credits that were spent; otherwise it leaves them.',
    }),
  }),
  response: Type.Object({ debt: Type.Boolean({ description: 'The setting from now on.' }) }, { title: 'CreditsSet' }),
  async change(query, { params, body }) {
    const organization = params.organization_id
    const after = { debt: body.debt }
    const [row] = await query('select credits_debt from organizations where id = $1 for no key update', [organization])
    await query('update organizations set credits_debt = $2 where id = $1', [organization, after.debt])
    const before = { debt: row!.credits_debt === 't' }
    return { entry: { action: 'credits.set', target: targetOf(organization, 'refunds'), before, after }, result: after }
  },
})

export const creditAccounts = [
  getBalance,
  listEntries,
  correction('grant', { id: 'grantCustomerCredits', right: 'manage', summary: 'Grant credits to a customer' }),
  correction('adjust', { id: 'adjustCustomerCredits', right: 'manage', summary: 'Correct a customer’s balance' }),
  setCredits,
] as const
