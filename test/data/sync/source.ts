// The project that tests of `tundish sync` copy, and the comparison of a copy with it.
import assert from 'node:assert/strict'
import { BASICS, insert } from '../../support/data.ts'
import type { Json, Project, TestServer } from '../../support/server.ts'
import type { ReadTable } from './copies.ts'

export const EMAIL = 'ada.lovelace@example.com'
export const PROFILES = 2300
// Numbers that a double would change.
export const METADATA = '{"list":[1.10,9007199254740993],"number":12345678901234567890.123}'

export const syncEnv = (server: TestServer, project: Project) => ({ SYNC_URL: server.url, SYNC_KEY: project.key })

export async function filled(server: TestServer): Promise<Project> {
  const project = await server.project()
  const refers = { profile_id: 'profile', funnel_id: 'funnel', session_id: 'session', experiment_id: 'experiment' }
  await insert(server.db, project, {
    ...BASICS,
    funnels: [
      { id: 'funnel', tags: ['a, "b"'] },
      { id: 'gone', title: 'a tab\t, a \\ and \\N', deleted_at: '2026-01-01T00:00:00Z' },
    ],
    profiles: [
      { id: 'profile', email: EMAIL, integrations: { stripe: 'cus_1' } },
      ...Array.from({ length: PROFILES }, (_, n) => ({ id: `p-${n}`, email: `p${n}@example.com` })),
    ],
    replies: [
      { session_id: 'session', element_id: 'name', value: 'Ada Lovelace' },
      { session_id: 'session', element_id: 'goals', value: ['sleep', 'calm'] },
    ],
    subscriptions: [{ id: 'subscription', product_id: 'product', price: 999_999_999_999, ...refers }],
    transactions: [{ id: 'transaction', subscription_id: 'subscription', ...refers }],
  })
  await server.db.query('update products set metadata = $2 where project_id = $1', [project.id, METADATA])
  return project
}

/** Compares the copy with the tables of the server. */
export async function checkEqual(server: TestServer, project: Project, read: ReadTable): Promise<void> {
  for (const [table, columns] of Object.entries(COMPARED)) {
    const names = columns.split(' ')
    const source = await server.db.query(`select to_json(t)::text as row from (${SOURCES[table]}) t`, [project.id])
    const expected = source.map(({ row }) => plain(names, JSON.parse(row!))).sort()
    assert.deepEqual((await read(table)).map((row) => plain(names, row)).sort(), expected, table)
  }
}

const COMPARED: Record<string, string> = {
  funnels: 'id title tags',
  experiments: 'id title',
  products: 'id name',
  profiles: 'id email country integrations',
  sessions: 'id profile_id attributes_ip',
  replies: 'session_id screen_id element_id element_type value',
  subscriptions: 'id status price profile_id profile_email product_name funnel_title session_id',
  transactions: 'id subscription_id price funnel_id',
}

const own = (table: string) => `select * from ${table} where project_id = $1`
const SOURCES: Record<string, string> = {
  ...Object.fromEntries('funnels experiments products profiles replies'.split(' ').map((table) => [table, own(table)])),
  sessions: 'select *, ip as attributes_ip from sessions where project_id = $1',
  subscriptions: `select s.*, p.email as profile_email, d.name as product_name, f.title as funnel_title from subscriptions s
    join profiles p on p.project_id = $1 and p.id = profile_id join products d on d.project_id = $1 and d.id = product_id
    left join funnels f on f.project_id = $1 and f.id = s.funnel_id where s.project_id = $1`,
  transactions: own('transactions'),
}

const plain = (names: string[], row: Json) =>
  JSON.stringify(names.map((name) => (typeof row[name] === 'object' ? row[name] : String(row[name]))))
