// A session: the API's shape, the import's fields, and what an erasure removes.
import { instant, integer, json, object, shape, text } from '../../lib/shape/shape.ts'
import { orElse, required, type Stored } from './import/fields.ts'
import * as from from './import/types.ts'
import { all, countedBy, field, importedOnly, nested, record, shownFields, toEmptyObject, toNull } from './record.ts'
import { columnOf, DIMENSIONS, dimension, visitOf } from './visit.ts'

const VISIT_COLUMNS = DIMENSIONS.map((name) => [name, columnOf(name)] as const)
const anyObject = { schema: { type: 'object', additionalProperties: true } }

const fields = {
  id: field(text('Identifier.', { example: 'ses_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }), required(from.id)),
  created_at: field(instant('When it began.'), required(from.past)),
  updated_at: field(instant('When it was last changed.'), from.past),
  profile_id: field(text('Profile that it belongs to.'), required(from.id), { refersTo: 'profile' }),
  funnel_id: field(text('Funnel that was visited.', { nullable: true }), from.id, { refersTo: 'funnel' }),
  funnel_version: field(integer('Version of the funnel.', { nullable: true }), from.integer(0)),
  experiment_id: field(text('Experiment that it took part in.', { nullable: true }), from.id, {
    refersTo: 'experiment',
  }),
  locale: field(text('Language.', { nullable: true, example: 'en' }), from.label),
  origin: field(
    text('URL at which it began; after an erasure, only scheme and host.', { nullable: true }),
    from.freeText,
    {
      erased: (column) => `origin_only(${column})`,
    },
  ),
  user_agent: field(text('Browser; null when unknown or erased.', { nullable: true }), from.freeText, {
    erased: toNull,
  }),
  query_params: field(
    json('Query parameters of that URL; empty after an erasure.', anyObject),
    orElse('{}', from.object),
    { erased: toEmptyObject },
  ),
  attributes: nested((inner) => object('Where the visitor was.', inner, { name: 'SessionAttributes' }), {
    ip: field(text('IP address; null when unknown or erased.', { nullable: true, example: '192.0.2.1' }), from.label, {
      erased: toNull,
    }),
    country: field(text('Country, ISO 3166-1 alpha-2.', { nullable: true, example: 'DE' }), from.country),
    region_code: field(text('Region.', { nullable: true }), from.label),
    city: field(text('City.', { nullable: true }), from.label),
    postal_code: field(text('Postal code; null when unknown or erased.', { nullable: true }), from.label, {
      erased: toNull,
    }),
    timezone: field(text('Time zone, IANA name.', { nullable: true, example: 'Europe/Berlin' }), from.label),
    locale_code: field(text('Language and region of the browser.', { nullable: true, example: 'de-DE' }), from.label),
  }),
  tracking_cookies: field(
    json('Cookies of advertising networks; empty after an erasure.', anyObject),
    orElse('{}', from.object),
    { erased: toEmptyObject },
  ),
  // For figures only: the API shows what they were read from.
  ...Object.fromEntries(DIMENSIONS.map((name) => [name, importedOnly(dimension(name))])),
}

export const sessionRecord = record({
  name: 'session',
  table: 'sessions',
  fields,
  counts: { '': all, ...countedBy('funnel_id') },
  lasting: DIMENSIONS.map(columnOf),
  derived(stored) {
    const found = visitOf({
      query_params: stored('query_params'),
      origin: stored('origin'),
      user_agent: stored('user_agent'),
    })
    const columns: Record<string, Stored> = {}
    for (const [name, column] of VISIT_COLUMNS) columns[column] = found[name]
    return columns
  },
})

export const session = shape('Session', 's', shownFields(fields))
