// The fields for ids and names that operators give to tenants and keys.

import { ID_PATTERN, LONGEST_NAME } from '../../core/tenants/tenants.ts'
import { DECLARED_ONLY, NAME_PATTERN } from '../../lib/http/rule-phrases.ts'
import { Type } from '../../lib/shape/schema.ts'

/** The id of a new organization or project; `createOrganization` and `createProject` enforce the pattern. */
export const newId = (description: string) =>
  Type.String({ description, minLength: 1, maxLength: 64, [DECLARED_ONLY]: { pattern: ID_PATTERN } })

/** A name to show; `checkName` enforces the pattern. */
export const nameField = (description: string) =>
  Type.String({ description, minLength: 1, maxLength: LONGEST_NAME, [DECLARED_ONLY]: { pattern: NAME_PATTERN } })
