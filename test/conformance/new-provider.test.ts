// npm run new-provider: the copy has the new name everywhere, and a name that is taken or cannot be used changes nothing.
import assert from 'node:assert/strict'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyProvider } from '../../scripts/new-provider.ts'
import { temporaryFolder } from '../support/folder.ts'

const ROOT = join(import.meta.dirname, '../..')
const root = temporaryFolder()
for (const folder of ['src/payments/providers/airwallex', 'test/payments/providers/airwallex'])
  cpSync(join(ROOT, folder), join(root, folder), { recursive: true })

test('the adapter and its tests are there under the new name, which is in every place of the old one', () => {
  const files = copyProvider(root, 'acmepay')
  assert.ok(files.includes(join(root, 'src/payments/providers/acmepay/acmepay.ts')), files.join())
  assert.ok(files.includes(join(root, 'test/payments/providers/acmepay/contract.test.ts')), files.join())
  for (const file of files) assert.ok(!/airwallex/i.test(readFileSync(file, 'utf8')), file)
  assert.match(readFileSync(join(root, 'src/payments/providers/acmepay/acmepay.ts'), 'utf8'), /class AcmepayProvider/)
})

test('a sentence for a name that is taken, missing, or not of small letters and digits', () => {
  assert.throws(() => copyProvider(root, 'airwallex'), /providers\/airwallex exists already/)
  for (const name of [undefined, '', 'Acme', 'acme-pay', '../acme', '9pay'])
    assert.throws(() => copyProvider(root, name), /^Error: Usage: npm run new-provider NAME/)
  assert.ok(!existsSync(join(root, 'src/payments/providers/Acme')))
})
