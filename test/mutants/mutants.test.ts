// Each mutant still changes the source: code that moved or was rewritten takes its mutants along.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { mutants } from './mutants.ts'

const SRC = join(import.meta.dirname, '../../src')
const PAGE = join(import.meta.dirname, '../../docs/decisions/0011-simulation.md')

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

test('decision 11 says of each mutant what found it, and how many there are', () => {
  const page = readFileSync(PAGE, 'utf8')
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| .{4,} \|$/gm)].map((row) => row[1]!)
  const names = Object.keys(mutants)
  assert.deepEqual(rows.sort(), [...names].sort())
  assert.match(page, new RegExp(`plants ${names.length} small bugs alone`))
})
