// Each mutant still changes the source: code that moved or was rewritten takes its mutants along.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { mutants } from './mutants.ts'

const SRC = join(import.meta.dirname, '../../src')
const TESTS = join(import.meta.dirname, '..')
const PAGE = join(import.meta.dirname, '../../docs/decisions/0011-measurements.md')

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

test('the page of decision 11 says of each mutant what found it, and how many there are', () => {
  const page = readFileSync(PAGE, 'utf8')
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| .{4,} \|$/gm)].map((row) => row[1]!)
  const names = Object.keys(mutants)
  assert.deepEqual(rows.sort(), [...names].sort())
  assert.match(page, new RegExp(`plants ${names.length} small bugs alone`))
})

test('every test that the page of decision 11 names exists', () => {
  const named = [...readFileSync(PAGE, 'utf8').matchAll(/test "([^"]+)"/g)].map(([, name]) => name!)
  assert.ok(named.length > 40)
  const sources = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const titles = sources.flatMap((path) =>
    [...readFileSync(join(TESTS, path), 'utf8').matchAll(/\btest\(\s*(['`])(.+?)\1/g)].map(([, , title]) => title!),
  )
  const missing = named.filter((name) => !titles.some((title) => isTitle(name, title)))
  assert.deepEqual(missing, [])
})

/** Whether the page's name is that of the test: a beginning before `…`, or a title with its `${variables}` filled in. */
function isTitle(name: string, title: string): boolean {
  if (name.endsWith('…')) return title.startsWith(name.slice(0, -1))
  const parts = title.split(/\$\{[^}]+\}/)
  if (parts.length === 1) return title === name
  return parts.join('').length > 20 && new RegExp(`^${parts.map(RegExp.escape).join('.+')}$`).test(name)
}
