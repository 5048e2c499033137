// A profile: the API's shape, the import's fields, and what an erasure removes.
import { boolean, instant, json, shape, text } from '../../lib/shape/shape.ts'
import { folded, orElse, required } from './import/fields.ts'
import * as from from './import/types.ts'
import { all, countedBy, field, importedOnly, record, shownFields, toEmptyObject, toNull } from './record.ts'

const fields = {
  id: field(text('Identifier.', { example: 'pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }), required(from.id)),
  created_at: field(instant('When it was created.'), required(from.past)),
  updated_at: field(instant('When it was last changed.'), from.past),
  email: field(
    text('E-mail address; null when unknown or erased.', { nullable: true, example: 'ada@example.com' }),
    folded(from.email),
    { erased: toNull },
  ),
  phone: field(text('Phone number; null when unknown or erased.', { nullable: true }), from.label, { erased: toNull }),
  password_hash: importedOnly(from.freeText, { erased: toNull }),
  country: field(text('Country, ISO 3166-1 alpha-2.', { nullable: true, example: 'DE' }), from.country),
  locale: field(text('Language.', { nullable: true, example: 'de' }), from.label),
  funnel_id: field(text('Funnel of the first session.', { nullable: true }), from.id, { refersTo: 'funnel' }),
  preview: field(boolean('Whether it comes from a preview of the funnel.'), from.boolean),
  integrations: field(
    json('Identifiers of the person in other services; empty after an erasure.', {
      schema: { type: 'object', additionalProperties: true },
      example: {},
    }),
    orElse('{}', from.object),
    { erased: toEmptyObject },
  ),
  anonymized_at: field(instant('When the personal data was erased.', { nullable: true }), from.instant),
}

export const profileRecord = record({
  name: 'profile',
  table: 'profiles',
  fields,
  conflicts: [
    {
      // Such a line would be half an erasure: the sessions would keep their personal data.
      reason: 'profile.anonymized_at is set, but the profile was not erased here: do that first',
      where: ({ project_id }) => `s.anonymized_at is not null and exists (
        select from profiles t where t.project_id = ${project_id} and t.id = s.id and t.anonymized_at is null)`,
    },
  ],
  kept: ['anonymized_at'],
  counts: { '': all, ...countedBy('funnel_id') },
})

export const profile = shape('Profile', 'p', shownFields(fields))
