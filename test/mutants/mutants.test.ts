// Each mutant still changes the source: code that moved or was rewritten takes its mutants along.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { mutants } from './mutants.ts'

const SRC = join(import.meta.dirname, '../../src')

test('each mutant changes exactly one place of the source', () => {
  const places = Object.entries(mutants).map(([name, { file, code }]) => {
    const found = readFileSync(join(SRC, file), 'utf8').split(code).length - 1
    return `${name}: ${found}`
  })
  assert.ok(places.length >= 40)
  assert.deepEqual(
    places.filter((place) => !place.endsWith(': 1')),
    [],
  )
})
