// scripts/sizes.ts counts the lines of functions as an editor shows them, whatever precedes them in the file.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { functionsOf } from '../../scripts/sizes.ts'

describe('the sizes of functions', () => {
  const sizes = (source: string) => functionsOf('a.ts', source).map(({ name, lines }) => `${name} ${lines}`)

  test('count from the first word to the closing brace, after comments with any characters', () => {
    const source =
      '// ü, 日本語\n\nexport function first(): number {\n  return 1\n}\n\n/** … */\nfunction second() {}\n'
    assert.deepEqual(sizes(source), ['a.ts#first 3', 'a.ts#second 1'])
  })

  test('are those of methods and of arrow functions, too', () => {
    const source = 'class A {\n  #m() {\n  }\n}\nconst o = {\n  n() {\n    return 1\n  },\n  p: () => {\n  },\n}\n'
    assert.deepEqual(sizes(source), ['a.ts#m 2', 'a.ts#n 3', 'a.ts#p 2'])
  })
})
