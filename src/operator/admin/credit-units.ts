// Units of credits: create, change and list.
import { ApiError, invalidValue } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { checkDecimals, formatCredits, readCredits, type SentAmount } from '../../payments/billing/credits/amount.ts'
import { creditsIn } from '../../payments/billing/credits/requests.ts'
import { notFound } from './exist.ts'
import { equals, list, ofOrganization } from './list.ts'
import { nameField } from './names.ts'
import { change, type Input } from './operation.ts'

export const TAG = 'Credits'
export const PATH = '/organizations/:organization_id/credits'
const ONE = `${PATH}/units/:unit` as const

/** The filters of lists of what customers have of units. */
export const ofCustomer = (row: string) => ({
  external_id: equals(`${row}.external_id`, 'Only those of this customer.'),
  unit: equals(`${row}.unit`, 'Only those of this unit.'),
})

const unit = shape('CreditUnit', 'u', {
  unit: text('Identifier.', { example: 'tokens' }),
  name: text('Display name.', { example: 'Tokens' }),
  decimals: integer('Decimals that an amount may have.', { example: 0 }),
  low_below: decimal('`credits.low` is sent when what a customer can spend falls below it.', {
    sql: 'trim_scale(u.low_below)',
    nullable: true,
    example: 10,
  }),
  created_at: instant('When it was created.'),
})

const lowBelow = Type.Optional({
  ...creditsIn('`credits.low` is sent when what a customer can spend falls below it'),
  type: ['number', 'string', 'null'],
} as Schema)

const createUnit = change({
  id: 'createCreditUnit',
  right: 'manage',
  command: 'credits unit create',
  method: 'POST',
  path: ONE,
  tag: TAG,
  summary: 'Create a unit of credits',
  body: Type.Named('NewCreditUnit', {
    name: Type.Optional(nameField('Display name; by default the identifier.')),
    decimals: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 6, default: 0, description: 'Decimals that an amount may have.' }),
    ),
    low_below: lowBelow,
  }),
  response: unit.schema,
  checkInput(input) {
    const id = input.params.unit
    if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(id))
      throw invalidValue(
        'A unit has 1 to 64 lower-case letters, digits, "-" and "_", and begins with a letter or digit.',
      )
    lowOf(input)
  },
  async change(query, input) {
    const { organization_id, unit: id } = input.params
    const { name = id, decimals = 0 } = input.body
    const low = lowOf(input)
    await query('insert into credit_clocks (organization_id) values ($1) on conflict do nothing', [organization_id])
    const made = await query(
      `insert into credit_units (organization_id, unit, name, decimals, low_below, created_at)
       values ($1, $2, $3, $4, $5, db_clock()) on conflict do nothing returning unit`,
      [organization_id, id, name, decimals, low],
    )
    if (made.length === 0) throw new ApiError(409, 'operation_refused', `The unit "${id}" exists already.`)
    const entry = {
      action: 'credit_unit.created',
      target: targetOf(organization_id, `unit ${id}`),
      after: { name, decimals, low_below: low },
    }
    return { entry, result: await readUnit(query, organization_id, id) }
  },
})

/** When a balance of the new unit is low. */
function lowOf({ params, body, exact = body }: Input<typeof ONE>): string | null {
  const { decimals = 0 } = body as { decimals?: number }
  return fitting(readLow(exact.low_below), { unit: params.unit, decimals })
}

const setUnit = change({
  id: 'setCreditUnit',
  right: 'manage',
  command: 'credits unit set',
  method: 'PATCH',
  path: ONE,
  tag: TAG,
  summary: 'Change a unit of credits',
  body: Type.Named('CreditUnitSettings', { name: Type.Optional(nameField('Display name.')), low_below: lowBelow }),
  response: unit.schema,
  checkInput: ({ body, exact = body }) => void readLow(exact.low_below),
  async change(query, { params, body, exact = body }) {
    const { organization_id, unit: id } = params
    const sent = readLow(exact.low_below)
    const before = await lockUnit(query, organization_id, id)
    const { name = before.name } = body
    const low = sent === undefined ? before.low_below : fitting(sent, { unit: id, decimals: Number(before.decimals) })
    await query('update credit_units set name = $3, low_below = $4 where organization_id = $1 and unit = $2', [
      ...[organization_id, id, name, low],
    ])
    const entry = {
      action: 'credit_unit.set',
      target: targetOf(organization_id, `unit ${id}`),
      before: { name: before.name, low_below: before.low_below },
      after: { name, low_below: low },
    }
    return { entry, result: await readUnit(query, organization_id, id) }
  },
})

export const creditUnits = [
  list({
    id: 'listCreditUnits',
    right: 'setup',
    command: 'credits unit list',
    columns: ['unit', 'name', 'decimals', 'low_below'],
    path: `${PATH}/units`,
    tag: TAG,
    summary: 'List units of credits',
    shape: unit,
    from: 'credit_units u',
    key: 'u.unit',
    ...ofOrganization('u'),
  }),
  createUnit,
  setUnit,
] as const

/** The target of an audit entry. */
export const targetOf = (organization: string, what: string) => `credits of organization ${organization}: ${what}`

const readLow = (sent: unknown) =>
  sent === undefined || sent === null ? sent : readCredits(sent as SentAmount, { field: 'low_below' })

function fitting(low: ReturnType<typeof readLow>, of: { unit: string; decimals: number }): string | null {
  if (!low) return null
  checkDecimals(low, { ...of, field: 'low_below' })
  return formatCredits(low)
}

/** A unit that is locked until commit. Throws a 404. */
export async function lockUnit(query: Query, organization: string, id: string) {
  const [row] = await query<{ name: string; decimals: string; low_below: string | null }>(
    `select name, decimals, trim_scale(low_below) as low_below from credit_units
     where organization_id = $1 and unit = $2 for no key update`,
    [organization, id],
  )
  if (!row) throw notFound('unit', id)
  return row
}

async function readUnit(query: Query, organization: string, id: string) {
  const [row] = await query(
    `select ${unit.namedColumns} from credit_units u where u.organization_id = $1 and u.unit = $2`,
    [organization, id],
  )
  return unit.readNamed(row!)
}
