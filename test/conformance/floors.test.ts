// The check of the floors looks: each planted breach is found, and a tree that it cannot read is no tree without breaches.
import assert from 'node:assert/strict'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { breaches } from '../../scripts/floors.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const PLANTED: [breach: string, files: Record<string, string>][] = [
  ['up from lib', { 'lib/planted.ts': "export { openApp } from '../app.ts'" }],
  ['up from lib', { 'lib/planted.ts': "export type { App } from '../app.ts'" }],
  ['up from ground', { 'providers/planted.ts': "import '../public/api.ts'" }],
  ['aside from public', { 'public/planted.ts': "import '../billing/planted.ts'", 'billing/planted.ts': '' }],
  ['aside from providers', { 'providers/planted.ts': "import '../simulator/server.ts'" }],
  ['to no floor', { 'app.ts': "import './planted/one.ts'", 'planted/one.ts': '' }],
  ['on no floor', { 'planted/one.ts': "import '../lib/clock.ts'" }],
  ['circle', { 'public/one.ts': "import './two.ts'", 'public/two.ts': "import './one.ts'" }],
  ['tools', { 'public/planted.ts': "import '../../test/planted.ts'", '../test/planted.ts': '' }],
  ['development', { 'public/planted.ts': "import 'fast-check'" }],
]

describe('the floors', () => {
  let root: string
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'tundish-floors-'))
    await cp(join(ROOT, 'package.json'), join(root, 'package.json'))
    await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  })
  after(() => rm(root, { recursive: true, force: true }))

  async function plant(files: Record<string, string>): Promise<void> {
    for (const [path, text] of Object.entries(files)) {
      const file = join(root, 'src', path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, `${text}\n`)
    }
  }

  for (const [breach, files] of PLANTED) {
    test(`"${breach}" for ${Object.values(files).find((text) => text !== '')}`, async () => {
      await rm(join(root, 'src'), { recursive: true, force: true })
      await cp(join(ROOT, 'src'), join(root, 'src'), { recursive: true })
      await plant(files)
      const found = await breaches(root)
      assert.ok(
        found.some((line) => line.startsWith(`${breach}: `)),
        `found only: ${found.join('; ')}`,
      )
    })
  }

  test('an error for modules that were not read', async () => {
    await rm(join(root, 'src'), { recursive: true, force: true })
    await plant({ 'lib/one.ts': '', 'lib/two.ts': '' })
    await assert.rejects(breaches(root), /were not read/)
  })
})
