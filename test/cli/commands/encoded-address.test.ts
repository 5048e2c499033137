// Addresses of databases whose user, password or database name have characters that must be percent-encoded.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { runStatement } from '../../support/postgres.ts'

const SERVER = process.env['TUNDISH_TEST_DATABASE']!
const NAME = `we@ird:1/2?3#4 5%40 & "quoted" ${process.pid}`
const PASSWORD = 'p@ss:w/o?r#d %41+'

describe('a database whose user, password and name are percent-encoded in its address', () => {
  const quoted = `"${NAME.replaceAll('"', '""')}"`
  const { host, search } = new URL(SERVER)
  const user = `${encodeURIComponent(NAME)}:${encodeURIComponent(PASSWORD)}`
  const path = `${encodeURIComponent(NAME)}${search}`
  const env = {
    DATABASE_URL: `postgres://${user}@${host}/${path}`,
    DATA_DIR: temporaryFolder(),
    MASTER_KEY: randomBytes(32).toString('base64'),
  }
  before(async () => {
    await runStatement(SERVER, `create role ${quoted} superuser login password '${PASSWORD}'`)
    await runStatement(SERVER, `create database ${quoted} template template0 encoding 'UTF8' owner ${quoted}`)
  })
  after(async () => {
    await runStatement(SERVER, `drop database if exists ${quoted} with (force)`)
    await runStatement(SERVER, `drop role if exists ${quoted}`)
  })

  for (const [what, address] of [
    ['of_one_host', env.DATABASE_URL],
    ['of_the_host_that_can_write', `${env.DATABASE_URL}${search === '' ? '?' : '&'}target_session_attrs=read-write`],
  ] as const)
    test(`is migrated, written, examined and copied by the address ${what.replaceAll('_', ' ')}`, async () => {
      const here = { ...env, DATABASE_URL: address }
      const run = async (...args: string[]) => {
        const { code, stdout, stderr } = await tundish(args, here)
        assert.equal(code, 0, `${args[0]}: ${stdout}${stderr}`)
        return stdout
      }
      await run('migrate')
      await run('org', 'create', what)
      assert.match(await run('org', 'list'), new RegExp(what))
      await run('doctor')
      await run('backup', join(temporaryFolder(), 'copy.backup'))
    })
})
