// Settings from files (NAME_FILE), as containers mount secrets.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { jsonOf } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'

const folder = temporaryFolder()
const file = (name: string) => join(folder, name)
const database = await freshDatabase()
after(() => database.drop())
await writeFile(file('database_url'), `${database.url}\n`)
await writeFile(file('master_key'), `${randomBytes(32).toString('base64')}\r\n`)
await writeFile(file('large'), 'x'.repeat(64 * 1024 + 1))
await writeFile(file('empty'), '\n')
await mkdir(file('folder'))

describe('settings from files', () => {
  test('0 for a command whose database and master key come from files', async () => {
    const env = { DATABASE_URL_FILE: file('database_url'), MASTER_KEY_FILE: file('master_key'), DATA_DIR: folder }
    assert.equal((await jsonOf(tundishAgain(['org', 'create', 'acme', '--json'], env))).id, 'acme')
    const again = await tundishAgain(['org', 'create', 'acme'], env)
    assert.equal(again.code, 1)
  })

  test('2 with a sentence for each file that cannot be read, and for a value that is also set', async () => {
    const { code, stderr } = await tundishAgain(['org', 'list'], {
      DATA_DIR: folder,
      PORT: '8080',
      PORT_FILE: file('empty'),
      ERASURE_LEDGER_FILE: file('missing'),
      SYNC_KEY_FILE: file('large'),
      HOST_FILE: file('folder'),
    })
    assert.equal(code, 2)
    assert.deepEqual(stderr.trim().split('\n').sort(), [
      `ERASURE_LEDGER_FILE cannot be read: ${file('missing')}: it does not exist (ENOENT).`,
      `HOST_FILE cannot be read: ${file('folder')}: it is a folder (EISDIR).`,
      'PORT and PORT_FILE are both set: unset one of them.',
      `SYNC_KEY_FILE names a file of more than 64 KiB: ${file('large')}.`,
    ])
  })

  test('2 with the file of a required setting that cannot be read, and no advice to make another value', async () => {
    const { code, stderr } = await tundishAgain(['org', 'list'], {
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: file('missing'),
      OIDC_ISSUER: 'https://login.example.com',
      OIDC_CLIENT_ID: 'tundish',
      OIDC_CLIENT_SECRET_FILE: file('missing'),
      OIDC_ROLES: '{"admins": "owner"}',
    })
    assert.equal(code, 2)
    assert.deepEqual(stderr.trim().split('\n').sort(), [
      `MASTER_KEY_FILE cannot be read: ${file('missing')}: it does not exist (ENOENT).`,
      `OIDC_CLIENT_SECRET_FILE cannot be read: ${file('missing')}: it does not exist (ENOENT).`,
    ])
  })

  test('a byte order mark is no part of the value; 2 and a sentence for another encoding', async () => {
    await writeFile(file('marked'), '\ufeffloud\n')
    await writeFile(file('utf16'), Buffer.from('\ufeffloud\n', 'utf16le'))
    const settings = { DATA_DIR: folder, SECRET_HEADER_CASE_FILE: file('marked'), SYNC_KEY_FILE: file('utf16') }
    const { code, stderr } = await tundishAgain(['org', 'list'], settings)
    assert.equal(code, 2)
    assert.match(stderr, /^SECRET_HEADER_CASE must be one of .*, got "loud"\.$/m)
    assert.ok(stderr.includes(`SYNC_KEY_FILE names a file that is not UTF-8: ${file('utf16')}.`), stderr)
  })

  test('an empty file counts as not set, and a value from a file is not repeated in an error', async () => {
    const { code, stderr } = await tundishAgain(['org', 'list'], {
      DATA_DIR: folder,
      SYNC_KEY_FILE: file('empty'),
      MASTER_KEY_FILE: file('database_url'),
    })
    assert.equal(code, 2)
    assert.equal(stderr.trim(), 'MASTER_KEY must be 32 bytes in base64: make one with "openssl rand -base64 32".')
  })
})
