// Text that people typed, such as their e-mail address, cannot control the terminal of an operator who reads it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { line } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column } from '../../support/rows.ts'
import { openImportCommand } from './import-command.ts'

// ESC as one and as two characters, a bell, a carriage return, a line feed, a change of direction; letters of Arabic stay.
const EMAIL = 'a\u001b[2J\u009b31m\u0007\r\n\u202eعb@x'
const SHOWN = 'a\\u001b[2J\\u009b31m\\u0007\\u000d\\n\\u202eعb@x'

const { imports, env, stop } = await openImportCommand()
const project = await imports.project()
const { written } = await imports.run(project, [
  line.profile({ id: 'visitor', email: EMAIL }),
  line.customer({ external_id: 'customer', email: EMAIL, profile_id: 'visitor' }),
])
assert.equal(written, 2)
after(stop)

test('a table shows control characters as escapes, each row in one line', async () => {
  const { code, stdout } = await tundishAgain(['search', 'visitor'], env)
  assert.equal(code, 0)
  assert.deepEqual(controls(stdout), [])
  const rows = stdout.split('\n').filter((row) => row.includes('@x'))
  assert.equal(rows.length, 2)
  for (const row of rows) assert.ok(row.includes(SHOWN), row)
})

test('details and errors show control characters as escapes, too', async () => {
  const { stdout } = await tundishAgain(['profile', 'show', 'visitor', '--project', project.id], env)
  assert.match(stdout, /visitor/)
  assert.deepEqual(controls(stdout), [])
  const { code, stderr } = await tundishAgain(['org', 'show', EMAIL], env)
  assert.equal(code, 1)
  assert.deepEqual(controls(stderr.trimEnd().replaceAll('\n', '')), [])
})

test('--json has the text as it is', async () => {
  const { stdout } = await tundishAgain(['search', 'visitor', '--json'], env)
  assert.deepEqual(column(JSON.parse(stdout).results, 'email'), [EMAIL, EMAIL])
})

const controls = (text: string) => text.match(/(?!\n)\p{Cc}|[\u202a-\u202e]/gu) ?? []
