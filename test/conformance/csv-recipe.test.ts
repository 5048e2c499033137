// The Python of the guide makes lines of a CSV file as spreadsheets write it. PYTHON names another Python.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { temporaryFolder } from '../support/folder.ts'
import { allWritten, openImports } from '../support/imports.ts'
import { titled } from '../support/titled.ts'

const PYTHON = process.env['PYTHON'] ?? 'python3'
const missing = spawnSync(PYTHON, ['-c', 'import sys; assert sys.version_info >= (3, 10)']).status !== 0
const imports = await openImports()
after(() => imports.stop())

const title = 'the recipe for CSV reads quotes, empty cells, a byte order mark and cents'
test(titled(title, missing ? `there is no ${PYTHON}` : undefined), { skip: missing }, async () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/import.md'), 'utf8')
  const [, program] = /^```python\n(# people\.py.*?)^```$/ms.exec(guide)!
  const folder = temporaryFolder()
  const [script, people] = [join(folder, 'people.py'), join(folder, 'people.csv')]
  writeFileSync(script, program!)
  const rows = [
    'id,created,email,paid',
    'c1,2026-01-31 09:00:00,"""a, b""@example.com",19.99',
    'c2,2026-02-01 10:00:00,,',
  ]
  writeFileSync(people, `\uFEFF${rows.join('\r\n')}\r\n`)
  const { stdout, stderr, status } = spawnSync(PYTHON, [script, people], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  const project = await imports.project()
  assert.deepEqual(await imports.run(project, stdout.trim().split('\n')), allWritten(3))
  const stored = await imports.rows(
    `select p.id, p.email, t.price from profiles p left join transactions t on t.project_id = p.project_id and t.profile_id = p.id
     where p.project_id = $1 order by 1`,
    [project.id],
  )
  assert.deepEqual(stored, [
    { id: 'c1', email: '"a, b"@example.com', price: '1999' },
    { id: 'c2', email: null, price: null },
  ])
})
