// scripts/floors.ts finds every planted breach, and fails for a tree that it cannot read.
import assert from 'node:assert/strict'
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { breaches } from '../../scripts/floors.ts'
import { temporaryFolder } from '../support/folder.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

// Each breach has files of its own, so that one run finds all of them.
const PLANTED: [breach: string, files: Record<string, string>][] = [
  ['up from lib', { 'lib/up.ts': "export { openApp } from '../app.ts'" }],
  ['up from lib', { 'lib/type-up.ts': "export type { App } from '../app.ts'" }],
  ['up from ground', { 'payments/providers/up.ts': "import '../../data/public/api.ts'" }],
  ['aside from data/public', { 'data/public/aside.ts': "import '../sync/neighbour.ts'", 'data/sync/neighbour.ts': '' }],
  ['aside from payments/providers', { 'payments/providers/aside.ts': "import '../../simulators/server.ts'" }],
  [
    'payments to data',
    { 'payments/billing/to-data.ts': "import '../../data/public/seen.ts'", 'data/public/seen.ts': '' },
  ],
  [
    'data to billing',
    { 'data/ingest/to-billing.ts': "import '../../payments/billing/seen.ts'", 'payments/billing/seen.ts': '' },
  ],
  [
    'up the stairs from ledger',
    { 'payments/billing/ledger/up.ts': "import '../movement/seen.ts'", 'payments/billing/movement/seen.ts': '' },
  ],
  [
    'up the stairs from kinds',
    { 'payments/billing/charge/up.ts': "import '../reconcile/seen.ts'", 'payments/billing/reconcile/seen.ts': '' },
  ],
  [
    'aside from payments/billing/refund',
    { 'payments/billing/refund/aside.ts': "import '../charge/seen.ts'", 'payments/billing/charge/seen.ts': '' },
  ],
  [
    'past kinds.ts to payments/billing/refund',
    { 'payments/billing/reconcile/past.ts': "import '../refund/seen.ts'", 'payments/billing/refund/seen.ts': '' },
  ],
  ['on no stair', { 'payments/billing/planted/one.ts': "import '../../../lib/clock.ts'" }],
  [
    'to no stair',
    { 'operator/admin/off.ts': "import '../../payments/billing/api-of.ts'", 'payments/billing/api-of.ts': '' },
  ],
  ['to no floor', { 'data/public/off.ts': "import '../../planted/two.ts'", 'planted/two.ts': '' }],
  ['on no floor', { 'planted/one.ts': "import '../lib/clock.ts'" }],
  ['circle', { 'data/public/one.ts': "import './two.ts'", 'data/public/two.ts': "import './one.ts'" }],
  ['tools', { 'data/public/tool.ts': "import '../../../test/planted.ts'", '../test/planted.ts': '' }],
  ['development', { 'data/public/tool-of-tests.ts': "import 'fast-check'" }],
]

describe('the floors', () => {
  let root: string
  let found: string[]
  before(async () => {
    root = temporaryFolder()
    await cp(join(ROOT, 'package.json'), join(root, 'package.json'))
    await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
    await cp(join(ROOT, 'src'), join(root, 'src'), { recursive: true })
    for (const [, files] of PLANTED) await plant(files)
    found = await breaches(root)
  })

  async function plant(files: Record<string, string>): Promise<void> {
    for (const [path, text] of Object.entries(files)) {
      const file = join(root, 'src', path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, `${text}\n`)
    }
  }

  for (const [breach, files] of PLANTED) {
    const [path, text] = Object.entries(files)[0]!
    test(`"${breach}" for ${text} in ${path}`, () => {
      assert.ok(
        found.some((line) => line.startsWith(`${breach}: src/${path} `)),
        `found only: ${found.join('; ')}`,
      )
    })
  }

  test('reports no breach except the planted ones', () => {
    const planted = PLANTED.flatMap(([, files]) => Object.keys(files).map((path) => `src/${path} `))
    assert.deepEqual(
      found.filter((line) => !planted.some((path) => line.includes(path))),
      [],
    )
  })

  test('an error for modules that were not read', async () => {
    await rm(join(root, 'src'), { recursive: true, force: true })
    await plant({ 'lib/one.ts': '', 'lib/two.ts': '' })
    await assert.rejects(breaches(root), /were not read/)
  })
})
