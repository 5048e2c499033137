// Every table is moved with its organization, or belongs to the installation for a reason: no row stays behind after a move.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tenantTables } from '../../src/operations/shards/tenant-tables.ts'
import { setUpDb } from '../support/database.ts'

// Of the whole installation. Each shard has its own.
const OF_NO_TENANT: Record<string, string> = {
  audit_chain_keys: 'Keys of the audit log.',
  audit_head: 'The end of the audit log.',
  audit_log: 'Entries are chained and never deleted: what operators did to an organization stays where they did it.',
  commit_beat: 'Detects failovers of this server.',
  dashboard_sessions: 'Of operators.',
  people_sessions: 'Of operators.',
  failovers: 'Of this server.',
  figure_programs: 'The programs that compute figures here.',
  instance: 'Settings of this database. The mark of a move is deleted at its end.',
  key_usage: 'Not copied, for a rate begins anew. The move deletes the rows of its keys.',
  operator_keys: 'Of operators, who see all organizations of a shard.',
  rates_fetch: 'The fetch of RATES_URL by this server.',
  replica_heartbeat: 'Of this server and its replicas.',
  schema_migrations: 'Of this database.',
  shared_exchange_rates: 'Rates for organizations that are created later; each has its own in exchange_rates.',
  sign_in_links: 'Of operators.',
}

const fresh = setUpDb()

/** The tables for which a move has no rule, with what is wrong. */
async function unmoved(): Promise<string[]> {
  const query = fresh.db.query
  const moved = new Set((await tenantTables(query, 'some', ['some-app'])).map(({ name }) => name))
  const tables = await query<{ name: string; refers_to: string; nullable: string }>(`
    select c.relname as name,
      (select coalesce(json_agg(distinct r.relname), '[]') from pg_constraint k join pg_class r on r.oid = k.confrelid
       where k.conrelid = c.oid and k.contype = 'f') as refers_to,
      not exists (select from pg_attribute a where a.attrelid = c.oid and a.attnotnull
        and a.attname = case when exists (select from pg_attribute o where o.attrelid = c.oid and o.attname = 'organization_id')
          then 'organization_id' else 'project_id' end) as nullable
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname`)
  return tables.flatMap(({ name, refers_to, nullable }) => {
    const isListed = OF_NO_TENANT[name!] !== undefined
    if (moved.has(name!) && isListed) return [`${name} is moved, and listed as of no tenant`]
    if (moved.has(name!))
      return nullable === 't' && name !== 'organizations' ? [`${name} may have rows whose tenant is null`] : []
    if (!isListed) return [`${name} is not moved, and not listed as of no tenant`]
    const tenants = (JSON.parse(refers_to!) as string[]).filter((other) => moved.has(other))
    return tenants.map((other) => `${name} refers to ${other}`)
  })
}

test('every table is moved with its organization, or belongs to the installation', async () => {
  assert.deepEqual(await unmoved(), [])
  const tables = await fresh.db.query(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace`,
  )
  const known = new Set(tables.map(({ name }) => name))
  assert.deepEqual(
    Object.keys(OF_NO_TENANT).filter((name) => !known.has(name)),
    [],
  )
})

test('a new table that a move would leave out is found', async () => {
  await fresh.db.query(`
    create table notes (id uuid primary key, organization text collate "C" not null references organizations (id));
    create unlogged table recent (id uuid primary key, project_id text collate "C");
    create table drafts (project_id text collate "C" references projects (id), id uuid);
    alter table operator_keys add column home text collate "C" references projects (id)`)
  assert.deepEqual(await unmoved(), [
    'drafts may have rows whose tenant is null',
    'notes is not moved, and not listed as of no tenant',
    'operator_keys refers to projects',
    'recent is not moved, and not listed as of no tenant',
  ])
})
