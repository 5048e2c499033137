// A merchant account at a payment provider: the import's fields.
import { required } from './import/fields.ts'
import { readCode } from './import/money-types.ts'
import * as from from './import/types.ts'
import { importedOnly, record, type Scope } from './record.ts'

/** The times of a record whose lines contain none. */
export const stampedTimes = ({ stamp }: Scope) => ({ created_at: stamp, updated_at: stamp })

export const merchantAccountRecord = record({
  name: 'merchant_account',
  table: 'merchant_accounts',
  tenant: 'organization_id',
  key: ['psp', 'psp_merchant_id'],
  fields: {
    psp: importedOnly(required(from.filledLabel)),
    psp_merchant_id: importedOnly(required(from.filledLabel)),
    region: importedOnly(from.label),
    currencies: importedOnly(from.texts(readCode)),
  },
  added: stampedTimes,
})
