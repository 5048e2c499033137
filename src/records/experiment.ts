// An experiment: the import's fields; the API shows it only within subscriptions.
import { required } from './import/fields.ts'
import * as from from './import/types.ts'
import { importedOnly, record } from './record.ts'

export const experimentRecord = record({
  name: 'experiment',
  table: 'experiments',
  fields: {
    id: importedOnly(required(from.id)),
    title: importedOnly(from.text),
    alias: importedOnly(from.text),
    enabled: importedOnly(from.boolean),
    created_at: importedOnly(required(from.past)),
    updated_at: importedOnly(from.past),
  },
})
