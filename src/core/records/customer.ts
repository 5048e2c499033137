// A billing customer: the import's fields, and what an erasure removes.
import { folded, required } from './import/fields.ts'
import * as from from './import/types.ts'
import { stampedTimes } from './merchant-account.ts'
import { importedOnly, record, type Tenant, toNull } from './record.ts'

/**
 * SQL: whether the customer of a staged row belongs to another project. It cannot change, because a customer's events go
 * to its project.
 */
export const belongsElsewhere = ({ organization_id, project_id }: Tenant) => `exists (
  select from customers c where c.organization_id = ${organization_id} and c.external_id = s.external_id
    and c.project_id <> ${project_id})`

export const customerRecord = record({
  name: 'customer',
  table: 'customers',
  tenant: 'organization_id',
  key: ['external_id'],
  fields: {
    external_id: importedOnly(required(from.externalId)),
    email: importedOnly(folded(from.email), { erased: toNull }),
    profile_id: importedOnly(from.id, { refersTo: 'profile' }),
  },
  conflicts: [
    { reason: 'customer.external_id belongs to another project of the organization', where: belongsElsewhere },
  ],
  added: (scope) => ({ project_id: scope.project_id, ...stampedTimes(scope) }),
})
