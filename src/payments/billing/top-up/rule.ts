// The rule of an automatic top-up: its fields, and how it is set, removed and listed.
import type { Entry } from '../../../core/audit/audit.ts'
import { limited } from '../../../core/lists/statements.ts'
import { beingMoved } from '../../../core/tenants/leaving.ts'
import { ApiError } from '../../../lib/errors.ts'
import { makeUuid } from '../../../lib/ids.ts'
import { type JsonObject, roundNumbers } from '../../../lib/json/read.ts'
import { formatMinor, MoneyError, readCurrency, readMinor } from '../../../lib/money.ts'
import type { Param, Query, Statement } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { decimal, instant, integer, shape, text } from '../../../lib/shape/shape.ts'
import { maximumOf } from '../amount.ts'
import { amountIn, amountRefused, externalId } from '../body.ts'
import { readExpiresAfter } from '../credits/after.ts'
import { checkDecimals, formatCredits, readCredits, type SentAmount } from '../credits/amount.ts'
import { unknownCustomer, unknownUnit } from '../credits/calls.ts'
import { creditsIn, unitIn } from '../credits/requests.ts'
import { lockAccounts, nameOf } from '../credits/store.ts'

/**
 * SQL: the first day of the present day or month of UTC. A clock that was set back across its beginning does not begin the one
 * before again, in which the rule might be used up: what is charged then counts in the later one.
 */
export function presentOf(period: 'day' | 'month', at: string): string {
  const start = `date_trunc('${period}', ${at} at time zone 'UTC')::date`
  return `(case when t.${period} = ${start} + interval '1 ${period}' then t.${period} else ${start} end)`
}

const usedOf = (period: 'day' | 'month') =>
  `case when t.${period} = ${presentOf(period, 'db_clock()')} then t.used_of_${period} else 0 end`

export const topUpRule = shape('TopUpRule', 't', {
  external_id: text('The customer.', { example: 'ada' }),
  unit: text('The unit.', { example: 'tokens' }),
  status: text('`off`: a decline, a refusal, a refund or a dispute switched it off; set it again to switch it on.', {
    enum: ['on', 'off'],
    example: 'on',
  }),
  off_reason: text(
    'Why it is off: the code of the decline or refusal, `revoked`, or `erased` after an erasure of the person.',
    { nullable: true },
  ),
  below: decimal('The card is charged when what can be spent falls below it.', {
    sql: 'trim_scale(t.below)',
    example: 100,
  }),
  amount: decimal('Amount of the charge, in major units.', { example: 9.99 }),
  currency_code: text('Its currency.', { example: 'USD' }),
  grants: decimal('How much it grants.', { sql: 'trim_scale(t.grants)', example: 1000 }),
  expires_after: text('How long that lasts, in hours; null: it does not expire.', {
    sql: `t.expires_after || 'h'`,
    nullable: true,
    example: '2160h',
  }),
  most_per_day: integer('The most charges in a day of UTC.', { example: 1 }),
  most_per_month: integer('The most charges in a month of UTC.', { example: 10 }),
  used_of_day: integer('Its charges of today.', { sql: usedOf('day'), example: 0 }),
  used_of_month: integer('Its charges of this month.', { sql: usedOf('month'), example: 3 }),
  created_at: instant('When it was first set.'),
  updated_at: instant('When it was last set, or switched off.'),
})

const most = (period: string, maximum: number) =>
  Type.Integer({ minimum: 1, maximum, description: `The most charges in a ${period} of UTC.` })

const ofCustomer = { external_id: externalId, unit: unitIn }

export const topUpIn = Type.Named('TopUpIn', {
  ...ofCustomer,
  below: creditsIn('The card is charged when what can be spent falls below it'),
  amount: amountIn('Amount of the charge in major units, with the decimals of the currency.'),
  currency_code: Type.String({ description: 'ISO 4217 code.', minLength: 3, maxLength: 3, examples: ['USD'] }),
  grants: Type.Optional(
    creditsIn('How much of the unit it grants; if left out, what the organization’s rules grant for the amount'),
  ),
  expires_after: Type.Optional({
    type: ['string', 'null'],
    maxLength: 16,
    description: 'How long it lasts, such as `90d` or `12h`. Only with `grants`.',
    examples: ['90d'],
  }),
  most_per_day: most('day', 100),
  most_per_month: most('month', 1000),
})

export const topUpName = Type.Named('TopUpName', ofCustomer)

type Charge = [amount: string, currency: string]

/** Reads what is sent of a rule, before anything is looked up. Throws a 400. */
export function topUpFrom(given: JsonObject) {
  const { external_id, unit, grants, expires_after } = given as Record<string, string>
  const amountOf = (field: string) => readCredits(given[field] as SentAmount, { field })
  if (grants === undefined && expires_after !== undefined)
    throw new ApiError(400, 'invalid_property', 'expires_after is allowed together with grants only.')
  return {
    externalId: external_id!,
    unit: unit!,
    below: amountOf('below'),
    charge: chargeOf(given),
    granted: grants === undefined ? undefined : { grants: amountOf('grants'), hours: readExpiresAfter(expires_after) },
    most: mostOf(given),
  }
}

/** Sets a customer's rule, switched on. Throws a 400 for what cannot be charged or granted. */
export async function setTopUp(query: Query, organizationId: string, rule: ReturnType<typeof topUpFrom>) {
  const { charge, most } = rule
  const key = { organizationId, externalId: rule.externalId, unit: rule.unit }
  const held = (await lockAccounts(query, [key], { create: [key] })).get(nameOf(key))!
  if (held === 'moving') throw beingMoved()
  if (held === 'unknown_customer') throw unknownCustomer(key)
  if (held === 'unknown_unit') throw unknownUnit(key.unit)
  if (held === 'none') throw new Error('Bug: an account of credits was not made')
  const credits = (field: string, amount: ReturnType<typeof readCredits>) => {
    checkDecimals(amount, { ...held, field })
    return formatCredits(amount)
  }
  const below = credits('below', rule.below)
  const granted = rule.granted
    ? [credits('grants', rule.granted.grants), rule.granted.hours]
    : await grantedByRule(query, key, charge)
  await checkMaximum(query, organizationId, charge)
  const params = [organizationId, key.externalId, key.unit]
  const [before] = await query(FIND, params)
  await query(SET, [...params, makeUuid(), below, ...charge, ...granted, ...most])
  const [after] = await query(FIND, params)
  return { entry: entryOf('set', key, before, after), result: await readTopUp(query, params) }
}

// `3.0` is an integer too.
const mostOf = ({ most_per_day, most_per_month }: JsonObject) =>
  [most_per_day!, most_per_month!].map((most) => String(roundNumbers(most)))

function chargeOf({ currency_code, amount }: JsonObject): Charge {
  const currency = readCurrency(currency_code as string)
  if (currency === undefined)
    throw new ApiError(400, 'unknown_currency', `currency_code "${currency_code}" is not a currency of ISO 4217.`)
  try {
    return [formatMinor(readMinor(amount as SentAmount, currency), currency), currency]
  } catch (error) {
    if (error instanceof MoneyError) throw amountRefused('invalid_amount', error.message, amount)
    throw error
  }
}

/** Throws a 400 for an amount that no charge may have: the first top-up would be refused, and switch the rule off. */
async function checkMaximum(query: Query, organizationId: string, [amount, currency]: Charge): Promise<void> {
  const [row] = await query(ABOVE_MAXIMUM, [organizationId, currency, amount])
  if (!row) return
  const sentence = `amount must be at most ${row.maximum} ${currency}, the organization's maximum of a charge, got ${amount}.`
  throw new ApiError(400, 'amount_above_maximum', sentence)
}

const ABOVE_MAXIMUM: Statement = {
  name: 'check maximum of top-up',
  text: `select m.maximum from organizations o
    cross join lateral (select ${maximumOf('o', '$2')} as maximum) m
    where o.id = $1 and $3::numeric > m.maximum::numeric`,
}

/** What the organization's rules grant for the charge: a rule that granted nothing of the unit would charge again and again. */
async function grantedByRule(
  query: Query,
  { organizationId, unit }: { organizationId: string; unit: string },
  [amount, currency]: Charge,
): Promise<[string, string | null]> {
  const [rule] = await query(
    `select trim_scale(amount) as grants, expires_after from credit_rules
     where organization_id = $1 and currency_code = $2 and charged = $3 and unit = $4`,
    [organizationId, currency, amount, unit],
  )
  if (rule) return [rule.grants!, rule.expires_after!]
  const sentence = `No rule says what a charge of ${amount} ${currency} grants in ${unit}: send grants, or set a rule with "tundish credits rule set".`
  throw new ApiError(400, 'invalid_property', sentence)
}

/** Removes a customer's rule. Throws a 400 if there is none. */
export async function removeTopUp(query: Query, organizationId: string, given: JsonObject) {
  const { external_id, unit } = given as Record<string, string>
  const params = [organizationId, external_id!, unit!]
  const [before] = await query(FIND, params)
  if (!before) throw new ApiError(400, 'unknown_top_up', 'The customer has no automatic top-up of the unit.')
  await query(REMOVE, params)
  return { entry: entryOf('removed', { organizationId, externalId: external_id!, unit: unit! }, before), result: {} }
}

function entryOf(
  what: string,
  { organizationId, externalId, unit }: { organizationId: string; externalId: string; unit: string },
  before?: object,
  after?: object,
): Entry {
  const target = `credits of organization ${organizationId}: top-up of ${externalId} in ${unit}`
  return { action: `top_up.${what}`, target, ...(before && { before }), ...(after && { after }) }
}

const IS_KEY = `t.organization_id = $1 and t.external_id = $2 and t.unit = $3 and t.status <> 'removed'`

const FIND: Statement = {
  name: 'find top-up rule',
  text: `select t.status, trim_scale(t.below) as below, t.amount, t.currency_code, trim_scale(t.grants) as grants, t.expires_after,
      t.most_per_day, t.most_per_month
    from credit_top_ups t where ${IS_KEY} for no key update`,
}

// Due at once: what can be spent may be below already.
const SET: Statement = {
  name: 'set top-up rule',
  text: `
    insert into credit_top_ups as t (organization_id, external_id, unit, top_up_id, status, below, amount, currency_code, grants,
      expires_after, most_per_day, most_per_month, due_at, created_at, updated_at)
    select $1, $2, $3, $4, 'on', $5, $6, $7, $8, $9, $10, $11, now.at, now.at, now.at from (select db_clock() as at) now
    on conflict (organization_id, external_id, unit) do update set status = 'on', off_reason = null, below = excluded.below,
      amount = excluded.amount, currency_code = excluded.currency_code, grants = excluded.grants,
      expires_after = excluded.expires_after, most_per_day = excluded.most_per_day, most_per_month = excluded.most_per_month,
      due_at = excluded.due_at, updated_at = excluded.updated_at`,
}

const REMOVE: Statement = {
  name: 'remove top-up rule',
  text: `update credit_top_ups t set status = 'removed', off_reason = null, due_at = null, updated_at = db_clock() where ${IS_KEY}`,
}

async function readTopUp(query: Query, params: string[]): Promise<object> {
  const [row] = await query(`select ${topUpRule.namedColumns} from credit_top_ups t where ${IS_KEY}`, params)
  return topUpRule.readNamed(row!)
}

// A customer has few units.
const MOST_RULES = 100

/** The statement that lists a customer's rules, by unit. */
export const topUpsOf = (organizationId: string, externalIdOf: string): [Statement, Param[]] => [
  limited(
    'top-up rules of customer',
    MOST_RULES,
    MOST_RULES,
    (limit) => `select ${topUpRule.columns} from credit_top_ups t
      where t.organization_id = $1 and t.external_id = $2 and t.status <> 'removed' order by t.unit limit ${limit}`,
  ),
  [organizationId, externalIdOf],
]
