// The list of tests that do not pass through HAProxy names tests that exist: a renamed one would no longer be excepted.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { FILES_OUT, OUT } from './suite-out.ts'

const named = () =>
  Object.entries(OUT).flatMap(([file, reasons]) => Object.keys(reasons).map((name) => ({ file, name })))

test('every excepted test exists, under its name', async () => {
  const wanted = [...Object.keys(FILES_OUT).map((file) => ({ file, name: '' })), ...named()]
  assert.ok(wanted.length > Object.keys(FILES_OUT).length)
  for (const { file, name } of wanted) {
    const source = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
    assert.ok(source.includes(`test('${name}`), `${file}: ${name}`)
  }
})
