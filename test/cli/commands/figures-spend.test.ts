// figures spend: what it prints of a CSV that is loaded, and loaded again.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { setUpEnv } from '../../support/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { tundishAgain } from '../../support/resident.ts'

const HEAD = 'day,source,campaign,currency,amount'

describe('figures spend', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'ads.csv')
  const env = setUpEnv()
  before(async () => {
    await tundishAgain(['org', 'create', 'acme'], env)
    await tundishAgain(['project', 'create', 'shop', '--org', 'acme'], env)
  })

  async function load(...lines: string[]) {
    writeFileSync(file, [HEAD, ...lines, ''].join('\n'))
    return tundishAgain(['figures', 'spend', file, '--project', 'shop'], env)
  }

  test('the amounts and days that were loaded, and how many were replaced', async () => {
    const { code, stdout, stderr } = await load('2026-01-31,google,brand,USD,12.50')
    assert.equal(code, 0, stderr)
    assert.equal(stdout, '1 amount of 1 day loaded, 0 replaced.\n')
    const again = await load('2026-01-31,google,brand,USD,10', '2026-02-01,google,,USD,7')
    assert.equal(again.stdout, '2 amounts of 2 days loaded, 1 replaced.\n')
  })
})
