// Everything works with a role that may do nothing but own its database: as on a hosted PostgreSQL, see docs/managed-postgresql.md.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { chargeDemo, serving } from '../../scripts/release/checks/serving.ts'
import { freePort, type Outcome, PROGRAM_ENV, program, tundish } from '../support/cli.ts'
import { temporaryFolder } from '../support/folder.ts'
import { freshDatabase, runStatement } from '../support/postgres.ts'

const ROLE = `plain_${process.pid}`
const folder = temporaryFolder()
const server = await freshDatabase()
const databases = [`${ROLE}_a`, `${ROLE}_b`]
after(async () => {
  for (const name of databases) await runStatement(server.url, `drop database if exists ${name} with (force)`)
  await runStatement(server.url, `drop role if exists ${ROLE}`)
  await server.drop()
})

test('serves, charges, syncs, erases, backs up and restores without any right beyond its database', async () => {
  await runStatement(
    server.url,
    `create role ${ROLE} login password 'plain' nosuperuser nocreatedb nocreaterole noreplication nobypassrls`,
  )
  for (const name of databases)
    await runStatement(server.url, `create database ${name} owner ${ROLE} encoding 'UTF8' template template0`)
  const [first, second] = databases.map((name) => {
    const url = Object.assign(new URL(server.url), { pathname: `/${name}`, username: ROLE, password: 'plain' }).href
    return { ...PROGRAM_ENV, DATABASE_URL: url, DATA_DIR: join(folder, name), MASTER_KEY: KEY }
  })
  const port = await freePort()
  const adminPort = await freePort()
  const url = `http://127.0.0.1:${port}`
  const settings = Object.entries({ ...first, PORT: String(port), ADMIN_PORT: String(adminPort) })
  const [node, args] = program('serve', '--demo')
  const running = await serving('env', [...settings.map(([name, value]) => `${name}=${value}`), node, ...args], url)
  try {
    await chargeDemo(url, running.output)
    const [, key] = /Service-Secret: (secret_[\w-]{43})/.exec(running.output())!
    const list = await fetch(`${url}/public/v1/profiles?limit=1`, { headers: { 'Service-Secret': key! } })
    const { data, pagination } = (await list.json()) as { data: { id: string }[]; pagination: { total: number } }
    const erased = await fetch(`${url}/public/v1/profiles/anonymize`, {
      method: 'POST',
      headers: { 'Service-Secret': key!, 'Content-Type': 'application/json' },
      body: JSON.stringify({ profile_ids: [data[0]!.id] }),
    })
    assert.equal(erased.status, 200)
    const sync = ['sync', '--json', '--url', url, '--to', `sqlite:${join(folder, 'copy.sqlite')}`]
    assert.ok(JSON.parse(succeeded(await tundish(sync, { ...first!, SYNC_KEY: key! }))).records > pagination.total)
    const { findings } = JSON.parse(succeeded(await tundish(['doctor', '--json'], first!)))
    const failed = findings.filter(({ level }: { level: string }) => level === 'failed')
    assert.deepEqual(failed, [])
    const file = join(folder, 'whole.backup')
    succeeded(await tundish(['backup', '--format', 'tundish', file], first!))
    const restore = ['restore', file, '--accounts', 'none', '--erasures', join(first!.DATA_DIR, 'erasures.ndjson')]
    succeeded(await tundish(restore, second!))
    assert.match(succeeded(await tundish(['org', 'list', '--json'], second!)), /"demo"/)
  } finally {
    await running.stop()
  }
})

const KEY = randomBytes(32).toString('base64')

function succeeded({ code, stdout, stderr }: Outcome): string {
  assert.equal(code, 0, stderr)
  return stdout
}
