// A restore marks the merchant accounts that may have charged since the backup, also those that the backup does not know.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { addRow } from '../../support/data.ts'
import { type Installation, openInstallations } from './installations.ts'

const { source, target, file } = await openInstallations('accounts.backup')

const connect = ({ db }: Installation, account: string) =>
  addRow(db, 'merchant_accounts', {
    organization_id: 'shop',
    psp: 'stripe',
    psp_merchant_id: account,
    is_sandbox: true,
  })
const ACCOUNTS = "select psp_merchant_id as id from unlisted_accounts where psp <> 'simulator' order by 1"
const names = async ({ db }: Installation) => (await db.query(ACCOUNTS)).map(({ id }) => id)
const restore = (...more: string[]) => target.run('restore', file, '--without-erasures', '--replace', ...more)

describe('a backup with a connected merchant account', () => {
  before(async () => {
    await connect(source, 'acct_1')
    await source.json('backup', file)
  })

  test('is refused without the accounts that were connected later, and nothing is changed', async () => {
    const { code, stderr } = await restore()
    assert.equal(code, 1)
    assert.match(stderr, /^Name the merchant accounts that were connected after the backup was made.*--accounts none/)
    assert.deepEqual(await target.db.query('select 1 from organizations'), [])
  })

  test('is refused with what names no account, or one of an organization that is not in it', async () => {
    const { code, stderr } = await restore('--accounts', 'shop/stripe')
    assert.equal(code, 2)
    assert.match(
      stderr,
      /^--accounts must be "none" or names such as acme\/stripe\/acct_1, with commas, got "shop\/stripe"/,
    )
    assert.match((await restore('--accounts', 'nowhere/stripe/a')).stderr, /no organization "nowhere"/)
  })

  test('marks its own accounts and the named ones', async () => {
    const { code, stderr, stdout } = await restore('--accounts', 'shop/stripe/acct_2, shop/stripe/eu/3')
    assert.equal(code, 0, stderr)
    assert.deepEqual(await names(target), ['acct_1', 'acct_2', 'eu/3'])
    assert.match(stdout, /answered with 503.*acct_1.*acct_2/s)
  })

  test('marks those of the database that it replaces, too', async () => {
    await connect(target, 'acct_4')
    assert.equal((await restore('--accounts', 'none')).code, 0)
    assert.deepEqual(await names(target), ['acct_1', 'acct_4'])
  })
})
