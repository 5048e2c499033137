// Temporary tables of a session that hold ids during the transaction of an import; they are empty at its begin.
import type { Query } from '../../lib/pg/types.ts'

/** Profiles, sessions and customers about which lines say something, and those that are erased. */
export const CONCERNED = 'import_concerned'
export const ERASED = 'import_erased'
export const ERASED_SESSIONS = 'import_erased_session'
export const ERASED_CUSTOMERS = 'import_erased_customer'
/** Records whose change stamps the records that contain their fields. */
export const CHANGED_PROFILES = 'import_changed_profiles'
export const CHANGED_CUSTOMERS = 'import_changed_customers'
export const STRIPPED_SESSIONS = 'import_stripped_sessions'
export const ANSWERED_SESSIONS = 'import_answered_sessions'
/** Changes that are written as events. */
export const NOTED = 'import_noted'

const ID = 'id text collate "C"'
const PROFILE_ID = 'profile_id text collate "C"'

/** Their columns by their names. */
export const HELPER_TABLES = {
  [CONCERNED]: ID,
  [ERASED]: `${ID}, erased_at timestamptz`,
  [ERASED_SESSIONS]: `${ID}, ${PROFILE_ID}`,
  [ERASED_CUSTOMERS]: `external_id text collate "C", ${PROFILE_ID}`,
  [CHANGED_PROFILES]: ID,
  [CHANGED_CUSTOMERS]: 'external_id text collate "C"',
  [STRIPPED_SESSIONS]: ID,
  [ANSWERED_SESSIONS]: ID,
  [NOTED]: `place bigint generated always as identity, kind text, id text, known boolean,
    status text, renewed_at timestamptz, period_starts_at timestamptz`,
}

/** Their names, each with a column of text. */
export const HELPERS = Object.entries(HELPER_TABLES).map(
  ([name, columns]) => [name, /(\w+) text/.exec(columns)![1]!] as const,
)

/** SQL that creates one of them; it ends with the session. */
export const createHelper = (name: string, columns: string) =>
  `create temp table ${name} (${columns}) on commit delete rows`

/** Creates all of them. */
export async function createHelperTables(query: Query): Promise<void> {
  await Promise.all(Object.entries(HELPER_TABLES).map(([name, columns]) => query(createHelper(name, columns))))
}
