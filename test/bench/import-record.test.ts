// The recorder of an import's statements: without it the benchmark has nothing for psql to do.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { writeLines } from '../../bench/import-lines.ts'
import { recordImport } from '../../bench/import-record.ts'
import { openRig } from '../../bench/rig.ts'

const RECORDS = 300

const rig = await openRig({ say: () => {} })
after(() => rig.close())

test('an import is recorded as a script with its rows, and is carried out', { timeout: 120_000 }, async () => {
  const file = join(rig.folder, 'records.ndjson')
  await writeLines(file, RECORDS)
  const script = await readFile(await recordImport(rig, file), 'utf8')
  const copied = [...script.matchAll(/^\\copy \w+ \(.*\) from '(.*)' /gm)].map(([, rows]) => rows!)
  const texts = await Promise.all(copied.map((rows) => readFile(rows, 'utf8')))
  assert.equal(texts.join('').trimEnd().split('\n').length, RECORDS)
  assert.match(script, /^insert into subscriptions /m)
  const [count] = await rig.app.db.query('select count(*) as n from subscriptions')
  assert.ok(Number(count!.n) > 0)
})
