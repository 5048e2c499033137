// PostgreSQL on virtual time: the time functions and views that our statements use, in a schema that comes first in the search path.

export const SEARCH_PATH = 'simulated,pg_catalog,public'

/** Virtual time begins here. */
const BEGINNING_MS = Date.parse('2026-01-01T00:00:00Z')

export const instantOf = (ms: number) => new Date(BEGINNING_MS + ms).toISOString()

// The time is the value of a sequence, and the instant at which a connection's transaction began is its application name: both
// are visible to all connections at once, and setting them changes no table, so that a check can see whether any has changed.
const BEGUN = 'simulated since '
const sinceOf = (name: string) => `
  case when starts_with(${name}, '${BEGUN}') then substr(${name}, ${BEGUN.length + 1})::timestamptz end`

// Functions without FROM, which PostgreSQL inlines.
export const SETUP = [
  'create schema simulated',
  'create unlogged sequence simulated.present minvalue 0 start 0',
  `create function simulated.clock_timestamp() returns timestamptz language sql volatile as
   $$ select timestamptz '${instantOf(0)}' + coalesce(pg_catalog.pg_sequence_last_value('simulated.present'), 0) * interval '1 ms' $$`,
  `create function simulated.now() returns timestamptz language sql volatile as
   $$ select ${sinceOf(`pg_catalog.current_setting('application_name')`)} $$`,
  `create view simulated.pg_stat_activity as
   select pid, datid, datname, backend_type, usename, state,
     case when xact_start is not null then ${sinceOf('application_name')} end as xact_start
   from pg_catalog.pg_stat_activity`,
  // The simulation implements lock timeouts itself, on virtual time.
  `create function simulated.set_config(name text, value text, is_local boolean) returns text language sql volatile as
   $$ select case when name = 'lock_timeout' then value else pg_catalog.set_config(name, value, is_local) end $$`,
  // Otherwise a seed could depend on the changes of earlier seeds.
  'create view simulated.pg_stat_user_tables as select * from pg_catalog.pg_stat_user_tables where false',
]

/** Sets the time. */
export const setTime = (ms: number) => `select pg_catalog.setval('simulated.present', ${ms})`

/** Sets the instant at which the next transaction of the connection begins. */
export const setBeginning = (ms: number) => `set application_name = '${BEGUN}${instantOf(ms)}'`

/** Makes the data of earlier seeds older than any reconciliation of a later one reaches back. */
export const FORGET = [
  ...['orders', 'refunds'].map(
    (table) => `update ${table} set settled_at = '2000-01-01' where settled_at > '2000-01-01'`,
  ),
  ...['credit_accounts', 'credit_top_ups'].map((table) => `update ${table} set due_at = null where due_at is not null`),
  // The sweep checks all projects for fresh counts.
  'delete from counts',
]
