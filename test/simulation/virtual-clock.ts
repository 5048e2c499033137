// PostgreSQL on virtual time: the functions and views of time that our statements use, in a schema that is looked at first.

export const SEARCH_PATH = 'simulated,pg_catalog,public'

/** Virtual time begins here. */
const BEGINNING_MS = Date.parse('2026-01-01T00:00:00Z')

export const instantOf = (ms: number) => new Date(BEGINNING_MS + ms).toISOString()

/** One row holds the time; one row a connection says since when its transaction has been running. */
export const SETUP = [
  'create schema simulated',
  'create table simulated.present (at timestamptz not null)',
  `insert into simulated.present values ('${instantOf(0)}')`,
  'create table simulated.open_transactions (pid int primary key, started timestamptz not null)',
  `create function simulated.clock_timestamp() returns timestamptz language sql volatile as
   $$ select at from simulated.present $$`,
  `create function simulated.now() returns timestamptz language sql volatile as
   $$ select started from simulated.open_transactions where pid = pg_catalog.pg_backend_pid() $$`,
  `create view simulated.pg_stat_activity as
   select a.pid, a.datid, a.datname, a.backend_type, a.usename, a.state, case when a.xact_start is not null then t.started end as xact_start
   from pg_catalog.pg_stat_activity a left join simulated.open_transactions t using (pid)`,
  // The session ends waits for locks itself, on virtual time.
  `create function simulated.set_config(name text, value text, is_local boolean) returns text language sql volatile as
   $$ select case when name = 'lock_timeout' then value else pg_catalog.set_config(name, value, is_local) end $$`,
  // No seed depends on what the seeds before it have changed.
  'create view simulated.pg_stat_user_tables as select * from pg_catalog.pg_stat_user_tables where false',
]

export const SET_TIME = `update simulated.present set at = $1`

export const BEGIN_TRANSACTION = `
  insert into simulated.open_transactions (pid, started) values ($1, $2)
  on conflict (pid) do update set started = excluded.started`

/** What earlier seeds left in the database is older than any reconciliation of a later one looks. */
export const FORGET = ['orders', 'refunds'].map(
  (table) => `update ${table} set settled_at = '2000-01-01' where settled_at > '2000-01-01'`,
)

/** The connections that this one waits for. */
export const BLOCKERS = 'select pg_catalog.pg_blocking_pids($1) as pids'
