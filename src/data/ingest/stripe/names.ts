// What the metadata of Stripe's objects names: a profile, a session, a funnel, an experiment.
import { UsageError } from '../../../lib/errors.ts'
import { isId, shorten } from '../../../lib/text.ts'

/** The fields of metadata that name a record, by the kind of the record. */
const METADATA = {
  profile: 'tundish_profile',
  session: 'tundish_session',
  funnel: 'tundish_funnel',
  experiment: 'tundish_experiment',
  variant: 'tundish_variant',
} as const

type Named = keyof typeof METADATA
/** Other names of these fields, for an account whose metadata is there already. */
export type MetadataFields = Partial<Record<Named, string>>

/** The ids that an object names. */
export type Names = Partial<Record<'profile' | 'session' | 'funnel' | 'experiment', string>>

/** What an object of Stripe may carry. */
interface Carrier {
  metadata?: Record<string, string> | null
}

/** The names in the metadata of these objects, of which the nearest comes first. What cannot be an id names nothing. */
export function namesIn(
  fields: MetadataFields | undefined,
  ...nearest: (Carrier | string | { deleted?: unknown } | null | undefined)[]
): Names {
  const names: Names = {}
  for (const kind of ['profile', 'session', 'funnel', 'experiment'] as const) {
    const field = fields?.[kind] ?? METADATA[kind]
    for (const object of nearest) {
      const value = typeof object === 'object' && object !== null ? (object as Carrier).metadata?.[field] : undefined
      if (value === undefined || !isId(value)) continue
      names[kind] = value
      break
    }
  }
  // A variant of an experiment is a version of the funnel here: the session has it.
  return names
}

/** Names of several objects, of which the nearest comes first. */
export const nearest = (...names: (Names | undefined)[]): Names => Object.assign({}, ...names.toReversed())

/** Reads `kind=field` as given by an operator. Throws a `UsageError`. */
export function readFields(given: readonly string[]): MetadataFields {
  const fields: MetadataFields = {}
  for (const text of given) {
    const [, kind = '', field = ''] = /^([a-z]+)=(.+)$/.exec(text) ?? []
    if (!Object.hasOwn(METADATA, kind) || field.length > 40)
      throw new UsageError(
        `metadata must be ${Object.keys(METADATA).join(', ')} with the name of a field, such as profile=user_id, got "${shorten(text, 64)}".`,
      )
    fields[kind as Named] = field
  }
  return fields
}

/** As they were given. */
export const writeFields = (fields: MetadataFields): string =>
  Object.entries(fields)
    .map(([kind, field]) => `${kind}=${field}`)
    .join(',')
