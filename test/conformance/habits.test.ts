// The commands for contributors: few scripts, each in CONTRIBUTING, and each deep check with its row in the page.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

test('package.json has at most a dozen scripts, and CONTRIBUTING names each except start', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const names = Object.keys(scripts)
  assert.ok(names.length <= 12, names.join(', '))
  const page = read('CONTRIBUTING.md')
  const missing = names.filter((name) => name !== 'start' && !new RegExp(`^npm (run )?${name}\\b`, 'm').test(page))
  assert.deepEqual(missing, [])
})

test('npm run test:deep lists each check, whose page says what it proves, and refuses others with 2', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(ROOT, 'test/deep/main.ts'), ...args], { encoding: 'utf8' })
  const listed = [...run().stdout.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name)
  const described = [...read('test/deep/README.md').matchAll(/^\| `(\S+)` \|/gm)].map(([, name]) => name)
  assert.ok(listed.length >= 9)
  assert.deepEqual(listed, described)
  const files = [...read('test/deep/main.ts').matchAll(/file: '([^']+)'/g)].map(([, file]) => file!)
  assert.equal(files.length, listed.length)
  for (const file of files) assert.ok(existsSync(join(ROOT, file)), file)
  assert.equal(run('nothing').status, 2)
})

test('every file that ARCHITECTURE names exists', () => {
  const named = [...read('ARCHITECTURE.md').matchAll(/`(src\/[\w/.-]+)`/g)].map(([, path]) => path!)
  assert.ok(named.length > 20)
  assert.deepEqual(
    named.filter((path) => !existsSync(join(ROOT, path))),
    [],
  )
})

test('a migration that older programs can live with adds no column that they would have to fill', () => {
  const wrong = readdirSync(join(ROOT, 'migrations')).filter((name) => {
    const text = read(`migrations/${name}`)
    // The first migrations make the tables.
    if (name < '0100' || !text.startsWith('-- breaking: no')) return false
    const clauses = text.replaceAll(/--.*$/gm, '').split(/[,;]/)
    return clauses.some(
      (clause) =>
        /\bset not null\b/i.test(clause) ||
        (/\badd column\b.*\bnot null\b/is.test(clause) && !/\bdefault\b/i.test(clause)),
    )
  })
  // Of before 1.0, when no program had been released.
  assert.deepEqual(wrong, ['0175_credits_in_syncs.sql'])
})
