// scripts/exports.ts finds exported values that no other file imports, and counts every form of import.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unusedExports } from '../../scripts/exports.ts'

const unused = (sources: Record<string, string>) => unusedExports(new Map(Object.entries(sources)))

test('an exported function that only its own file uses is found', () => {
  const sources = {
    'src/a.ts': 'export function used(): void {}\nexport function unused(): void { used() }\n',
    'src/b.ts': "import { used } from './a.ts'\nused()\n",
  }
  assert.deepEqual(unused(sources), ['src/a.ts#unused'])
})

test('a destructured constant, a class and a re-export are found', () => {
  const sources = {
    'src/a.ts': 'export const { first, second: renamed } = { first: 1, second: 2 }\nexport class Third {}\n',
    'src/b.ts': "export { first } from './a.ts'\n",
  }
  assert.deepEqual(unused(sources), ['src/a.ts#Third', 'src/a.ts#renamed', 'src/b.ts#first'])
})

test('renamed imports, imports by a test, of a namespace and on demand count', () => {
  const sources = {
    'src/a.ts': 'export const one = 1\nexport const two = 2\n',
    'src/b.ts': 'export const three = 3\n',
    'src/c.ts': 'export const four = 4\n',
    'test/a.test.ts': "import { one as uno, two } from '../src/a.ts'\nimport * as b from '../src/b.ts'\n",
    'src/main.ts': "const { four } = await import('./c.ts')\n",
  }
  assert.deepEqual(unused(sources), [])
})

test('types are not checked', () => {
  assert.deepEqual(unused({ 'src/a.ts': 'export interface A {}\nexport type B = A\n' }), [])
})
