// The fields for ids and names that operators give to tenants and keys, for amounts, and the codes of currencies.

import { ID_PATTERN, LONGEST_NAME } from '../../core/tenants/tenants.ts'
import { ApiError } from '../../lib/errors.ts'
import { DECLARED_ONLY, NAME_PATTERN } from '../../lib/http/rule-phrases.ts'
import { readCurrency } from '../../lib/money.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'

/** The id of a new organization or project; `createOrganization` and `createProject` enforce the pattern. */
export const newId = (description: string) =>
  Type.String({ description, minLength: 1, maxLength: 64, [DECLARED_ONLY]: { pattern: ID_PATTERN } })

/** A name to show; `checkName` enforces the pattern. */
export const nameField = (description: string) =>
  Type.String({ description, minLength: 1, maxLength: LONGEST_NAME, [DECLARED_ONLY]: { pattern: NAME_PATTERN } })

/** An amount as a number or as text, which keeps all of its digits. */
export const amountField = (description: string, example: string | number): Schema => ({
  type: ['number', 'string'],
  description,
  examples: [example],
})

/** The code in upper case. Throws a 400 for a currency that ISO 4217 does not have. */
export function currencyOf(code: string): string {
  const currency = readCurrency(code)
  if (currency === undefined) throw new ApiError(400, 'unknown_currency', `"${code}" is not a currency of ISO 4217.`)
  return currency
}
