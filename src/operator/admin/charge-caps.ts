// Caps of charges: how many, and how much money, a customer or the organization may have in a day, week or month.
import { formatMinor, MoneyError, minorUnits, readAmount, toMinor, tooManyDecimals } from '../../lib/money.ts'
import { Type } from '../../lib/shape/schema.ts'
import { decimal, instant, shape, text } from '../../lib/shape/shape.ts'
import { amountRefused } from '../../payments/billing/body.ts'
import { countBefore } from '../../payments/billing/charge/caps.ts'
import type { SentAmount } from '../../payments/billing/credits/amount.ts'
import { PATH, TAG, targetOf } from './credit-units.ts'
import { lockOrganization, notFound } from './exist.ts'
import { list, ofOrganization } from './list.ts'
import { amountField, currencyOf } from './names.ts'
import { change, type Input } from './operation.ts'

const cap = shape('ChargeCap', 'k', {
  organization_id: text('The organization.', { example: 'acme' }),
  scope: text('Of each `customer`, or of the `organization`.', { example: 'customer' }),
  per: text('Calendar period, in UTC.', { example: 'day' }),
  currency_code: text('Currency of the money; null: the number of charges.', {
    sql: `nullif(k.currency_code, '')`,
    nullable: true,
    example: 'USD',
  }),
  most: decimal('The most that is allowed, in major units, or as a number of charges.', { example: 100 }),
  created_at: instant('When it was first set.'),
})

const name = {
  scope: Type.String({ enum: ['customer', 'organization'], description: 'Of each customer, or of the organization.' }),
  per: Type.String({ enum: ['day', 'week', 'month'], description: 'Calendar period, in UTC.' }),
  currency_code: Type.Optional(
    Type.String({
      minLength: 3,
      maxLength: 3,
      description: 'Caps the money in this currency; without it, the number of charges.',
    }),
  ),
}

type Key = [organization: string, scope: string, per: string, currency: string]

function keyOf({ params, body }: Input<typeof PATH>): Key {
  const { scope, per, currency_code } = body as { scope: string; per: string; currency_code?: string }
  return [params.organization_id, scope, per, currency_code === undefined ? '' : currencyOf(currency_code)]
}

const mostOf = (input: Input<typeof PATH>) => readMost((input.exact ?? input.body).most as SentAmount, keyOf(input)[3])

/** The cap as text: an amount with the decimals of the currency, or a whole number of charges. */
function readMost(sent: SentAmount, currency: string): string {
  try {
    const amount = readAmount(sent)
    if (amount.digits < 0n) throw new MoneyError('must be at least 0')
    if (currency === '') {
      if (amount.scale > 0) throw new MoneyError('must be a whole number of charges')
      return String(amount.digits)
    }
    const minor = toMinor(amount, currency)
    if (minor === undefined || minorUnits(currency) === undefined) throw new MoneyError(tooManyDecimals(currency))
    return formatMinor(minor, currency)
  } catch (error) {
    if (error instanceof MoneyError) throw amountRefused('invalid_amount', error.message, sent, 'most')
    throw error
  }
}

const WHERE = 'k.organization_id = $1 and k.scope = $2 and k.per = $3 and k.currency_code = $4'

const setCap = change({
  id: 'setChargeCap',
  right: 'manage',
  command: 'credits cap set',
  method: 'PUT',
  path: `${PATH}/caps`,
  tag: TAG,
  summary: 'Set a cap of charges',
  description:
    'A charge that would exceed it is refused with `charge_cap_reached`. What was charged earlier in the period counts, too.',
  body: Type.Named('ChargeCapSettings', {
    ...name,
    most: amountField('The most that is allowed.', '100'),
  }),
  response: cap.schema,
  checkInput: (input) => void mostOf(input),
  async change(query, input) {
    const key = keyOf(input)
    const most = mostOf(input)
    await lockOrganization(query, key[0])
    const [before] = await query(`select most from charge_caps k where ${WHERE}`, key)
    await query(
      `insert into charge_caps (organization_id, scope, per, currency_code, most, created_at)
       values ($1, $2, $3, $4, $5, db_clock())
       on conflict (organization_id, scope, per, currency_code) do update set most = excluded.most`,
      [...key, most],
    )
    if (!before) await countBefore(query, key)
    const [row] = await query(`select ${cap.namedColumns} from charge_caps k where ${WHERE}`, key)
    const entry = { action: 'charge_cap.set', target: nameOf(key), ...(before && { before }), after: { most } }
    return { entry, result: cap.readNamed(row!) }
  },
})

const removeCap = change({
  id: 'removeChargeCap',
  right: 'manage',
  command: 'credits cap remove',
  method: 'POST',
  path: `${PATH}/caps/remove`,
  tag: TAG,
  summary: 'Remove a cap of charges',
  body: Type.Named('ChargeCapName', name),
  response: Type.Object({}, { title: 'ChargeCapRemoved' }),
  checkInput: (input) => void keyOf(input),
  async change(query, input) {
    const key = keyOf(input)
    const removed = await query(`delete from charge_caps k where ${WHERE} returning most`, key)
    if (removed.length === 0) throw notFound('cap', key.slice(1).join(' ').trim())
    await query(
      `delete from charge_counters u where organization_id = $1 and per = $3 and currency_code = $4
         and ($2 = 'organization') = (external_id = '')`,
      key,
    )
    return { entry: { action: 'charge_cap.removed', target: nameOf(key), before: removed[0]! }, result: {} }
  },
})

const nameOf = ([organization, ...rest]: Key) => targetOf(organization, `cap ${rest.join(' ').trim()}`)

export const chargeCaps = [
  list({
    id: 'listChargeCaps',
    right: 'setup',
    command: 'credits cap list',
    columns: ['scope', 'per', 'currency_code', 'most'],
    path: `${PATH}/caps`,
    tag: TAG,
    summary: 'List caps of charges',
    shape: cap,
    from: 'charge_caps k',
    key: `k.scope || ' ' || k.per || ' ' || k.currency_code`,
    ...ofOrganization('k'),
  }),
  setCap,
  removeCap,
] as const
