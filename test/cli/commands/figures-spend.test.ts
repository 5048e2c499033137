// figures spend: what it prints of a CSV that is loaded, and loaded again.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
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

  const load = (...lines: string[]) => loadBytes(Buffer.from([HEAD, ...lines, ''].join('\n')))

  async function loadBytes(bytes: Buffer) {
    writeFileSync(file, bytes)
    return tundishAgain(['figures', 'spend', file, '--project', 'shop'], env)
  }

  test('the amounts and days that were loaded, and how many were replaced', async () => {
    const { code, stdout, stderr } = await load('2026-01-31,google,brand,USD,12.50')
    assert.equal(code, 0, stderr)
    assert.equal(stdout, '1 amount of 1 day loaded, 0 replaced.\n')
    const again = await load('2026-01-31,google,brand,USD,10', '2026-02-01,google,,USD,7')
    assert.equal(again.stdout, '2 amounts of 2 days loaded, 1 replaced.\n')
  })

  test('a file of Windows: with a byte order mark and CRLF, also compressed', async () => {
    const text = `\ufeff${HEAD}\r\n2026-03-01,google,Frühling,USD,3\r\n`
    for (const bytes of [Buffer.from(text), gzipSync(text)]) {
      const { stdout, stderr } = await loadBytes(bytes)
      assert.match(stdout, /^1 amount of 1 day loaded/, stderr)
    }
  })

  test('1 and one sentence for another encoding than UTF-8; nothing is loaded', async () => {
    const text = `${HEAD}\n2026-04-01,google,Frühling,USD,3\n`
    assert.deepEqual(await loadBytes(Buffer.from(text, 'latin1')), {
      code: 1,
      stdout: '',
      stderr: `${file} is not UTF-8: convert it to plain UTF-8 text.\n`,
    })
    const { stderr } = await loadBytes(Buffer.from(`\ufeff${text}`, 'utf16le'))
    assert.equal(stderr, `${file} is UTF-16: convert it to plain UTF-8 text or gzip.\n`)
    assert.equal((await load('2026-04-01,google,,USD,1')).stdout, '1 amount of 1 day loaded, 0 replaced.\n')
  })

  test('2 and the line of the file for an amount, a day or a campaign that breaks its rule', async () => {
    const good = ['2026-06-01,google,a,USD,1', '', '2026-06-01,meta,a,USD,1']
    const faults = [
      ['2026-06-01,google,b,USD,x', 'amount must be a decimal number'],
      ['2026-06-31,google,b,USD,1', 'day must be a day such as 2026-01-31, got "2026-06-31"'],
      ['2026-06-01,google,ada@example.com,USD,1', 'campaign must name a campaign, and no person'],
      ['2026-06-01,google,b,US,1', 'currency must'],
    ]
    for (const [row, sentence] of faults) {
      const { code, stderr } = await load(...good, row!)
      assert.equal(code, 2)
      assert.ok(stderr.startsWith(`${file}:5: ${sentence}`), stderr)
      const alone = await load(row!)
      assert.ok(alone.stderr.startsWith(`${file}:2: ${sentence}`), alone.stderr)
    }
    assert.equal((await load(...good)).stdout, '2 amounts of 1 day loaded, 0 replaced.\n')
  })

  test('the amounts without a value in the reporting currency, which is not the US dollar', async () => {
    await tundishAgain(['project', 'set', 'shop', '--currency', 'EUR'], env)
    const { stdout } = await load('2026-05-01,google,,EUR,1', '2026-05-01,meta,,USD,2', '2026-05-01,other,,USD,3')
    assert.match(stdout, /^3 amounts .*\. 2 have no value in the reporting currency: load exchange rates first\.$/m)
  })
})
