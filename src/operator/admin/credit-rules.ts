// What charges of an amount grant: set, remove and list.
import { formatMinor, MoneyError, readMinor } from '../../lib/money.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { decimal, instant, shape, text } from '../../lib/shape/shape.ts'
import { amountRefused } from '../../payments/billing/body.ts'
import { readExpiresAfter } from '../../payments/billing/credits/after.ts'
import { checkDecimals, formatCredits, readCredits, type SentAmount } from '../../payments/billing/credits/amount.ts'
import { creditsIn } from '../../payments/billing/credits/requests.ts'
import { lockUnit, PATH, TAG, targetOf } from './credit-units.ts'
import { notFound } from './exist.ts'
import { list, ofOrganization } from './list.ts'
import { amountField, currencyOf } from './names.ts'
import { change, type Input } from './operation.ts'

const rule = shape('CreditRule', 'r', {
  currency_code: text('Currency of the charge.', { example: 'USD' }),
  charged: decimal('Amount of the charge in major units.', { example: 9.99 }),
  unit: text('Unit that it grants.', { example: 'tokens' }),
  amount: decimal('How much it grants.', { sql: 'trim_scale(r.amount)', example: 100 }),
  expires_after: text('How long it lasts, in hours; null: it does not expire.', {
    sql: `r.expires_after || 'h'`,
    nullable: true,
    example: '2160h',
  }),
  created_at: instant('When it was set.'),
})

const OF_UNIT = `${PATH}/units/:unit/rules` as const

/** The charge that a rule is for. */
const charge = {
  currency_code: Type.String({ description: 'Currency of the charge.', minLength: 3, maxLength: 3, examples: ['USD'] }),
  charged: amountField('Amount of the charge in major units.', '9.99'),
}

function ruleOf({ params, body, exact = body }: Input<typeof OF_UNIT>): [string, string, string, string] {
  const currency = currencyOf(body.currency_code as string)
  try {
    const minor = readMinor(exact.charged as SentAmount, currency)
    return [params.organization_id, currency, formatMinor(minor, currency), params.unit]
  } catch (error) {
    if (error instanceof MoneyError) throw amountRefused('invalid_amount', error.message, exact.charged, 'charged')
    throw error
  }
}

const settingOf = (input: Input<typeof OF_UNIT>) => ({
  key: ruleOf(input),
  amount: readCredits((input.exact ?? input.body).amount as SentAmount),
  hours: readExpiresAfter(input.body.expires_after as string | null | undefined),
})

const setRule = change({
  id: 'setCreditRule',
  right: 'manage',
  command: 'credits rule set',
  method: 'PUT',
  path: OF_UNIT,
  tag: TAG,
  summary: 'Set what a charge of an amount grants',
  description: 'Holds for charges whose request does not say what they grant.',
  body: Type.Named('CreditRuleSettings', {
    ...charge,
    amount: creditsIn('How much it grants') as Schema,
    expires_after: Type.Optional(
      Type.Union([Type.String({ maxLength: 16 }), Type.Null()], {
        description: 'How long it lasts, such as `90d` or `12h`; without it, it does not expire.',
        examples: ['90d'],
      }),
    ),
  }),
  response: rule.schema,
  checkInput: (input) => void settingOf(input),
  async change(query, input) {
    const { key, amount, hours } = settingOf(input)
    const [organization, , , unit] = key
    const { decimals } = await lockUnit(query, organization, unit)
    checkDecimals(amount, { unit, decimals: Number(decimals) })
    const [before] = await query(
      `select trim_scale(amount) as amount, expires_after from credit_rules r where ${RULE}`,
      key,
    )
    await query(SET_RULE, [...key, formatCredits(amount), hours])
    const [row] = await query(`select ${rule.namedColumns} from credit_rules r where ${RULE}`, key)
    const entry = {
      action: 'credit_rule.set',
      target: nameOf(key),
      ...(before && { before }),
      after: { amount: formatCredits(amount), expires_after: hours },
    }
    return { entry, result: rule.readNamed(row!) }
  },
})

const RULE = 'r.organization_id = $1 and r.currency_code = $2 and r.charged = $3::numeric and r.unit = $4'
const SET_RULE = `
  insert into credit_rules (organization_id, currency_code, charged, unit, amount, expires_after, created_at)
  values ($1, $2, $3, $4, $5, $6, db_clock())
  on conflict (organization_id, currency_code, charged, unit) do update
  set amount = excluded.amount, expires_after = excluded.expires_after`

const nameOf = ([organization, ...rest]: [string, string, string, string]) =>
  targetOf(organization, `rule ${rest.join(' ')}`)

const removeRule = change({
  id: 'removeCreditRule',
  right: 'manage',
  command: 'credits rule remove',
  method: 'POST',
  path: `${OF_UNIT}/remove`,
  tag: TAG,
  summary: 'Remove what a charge of an amount grants',
  body: Type.Named('CreditRuleName', charge),
  response: Type.Object({}, { title: 'CreditRuleRemoved' }),
  checkInput: (input) => void ruleOf(input),
  async change(query, input) {
    const key = ruleOf(input)
    const [before] = await query(
      `delete from credit_rules r where ${RULE} returning trim_scale(amount) as amount, expires_after`,
      key,
    )
    if (!before) throw notFound('rule', key.slice(1).join(' '))
    return { entry: { action: 'credit_rule.removed', target: nameOf(key), before }, result: {} }
  },
})

export const creditRules = [
  list({
    id: 'listCreditRules',
    right: 'setup',
    command: 'credits rule list',
    columns: ['currency_code', 'charged', 'unit', 'amount', 'expires_after'],
    path: `${PATH}/rules`,
    tag: TAG,
    summary: 'List what charges grant',
    shape: rule,
    from: 'credit_rules r',
    key: `r.currency_code || ' ' || r.charged || ' ' || r.unit`,
    ...ofOrganization('r'),
  }),
  setRule,
  removeRule,
] as const
