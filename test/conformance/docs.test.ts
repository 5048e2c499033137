// Compares the docs with the program: every setting, command, option and dependency is documented, and every link works.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, test } from 'node:test'
import { FLOORS } from '../../scripts/floors.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const files = (folder: string, suffix: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(suffix))
    .map((name) => join(folder, name))

const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]!)
const sorted = (names: Iterable<string>) => [...new Set(names)].sort()

describe('the docs', () => {
  test('configuration.md has a heading for each setting, and for nothing else', () => {
    const settings = matches(read('src/config.ts'), /\b(?:text|integer|choice|url|databaseUrl)\('([A-Z_]+)'/g)
    assert.ok(settings.length >= 14)
    assert.deepEqual(matches(read('docs/configuration.md'), /^### (.+)$/gm).sort(), sorted(settings))
  })

  test('commands.md has a heading for each command, and for nothing else', () => {
    const commands = matches(read('src/main.ts'), /^ {4}'?([a-z-]+)'?: (?:\(\) => import|')/gm)
    assert.ok(commands.length >= 8)
    assert.deepEqual(matches(read('docs/commands.md'), /^## (.+)$/gm).sort(), sorted(commands))
  })

  test('commands.md describes every option of every command', () => {
    const sources = files('src/cli/commands', '.ts').map(read).join('\n')
    const options = sorted(matches(sources, /(?:[oO]ption|Option)\(\s*'(--[a-z-]+)/g))
    assert.ok(options.length >= 10)
    const page = read('docs/commands.md')
    assert.deepEqual(
      options.filter((option) => !new RegExp(`${option}\\b`).test(page)),
      [],
    )
  })

  test('the README leads to every guide', () => {
    const guides = files('docs', '.md').filter((path) => dirname(path) === 'docs')
    assert.ok(guides.length >= 20)
    const linked = new Set(matches(read('README.md'), /\((docs\/[a-z-]+\.md)\b/g))
    assert.deepEqual(
      guides.filter((guide) => !linked.has(guide)),
      [],
    )
  })

  test('test/support/README.md names every file there, and no other', () => {
    const there = files('test/support', '.ts').map((path) => path.split('/').at(-1))
    assert.deepEqual(matches(read('test/support/README.md'), /^- `([^`]+)`: /gm).sort(), there.sort())
  })

  test('CONTRIBUTING.md says what is in each folder of src', () => {
    const [table] = /## Where things are\n[\s\S]+?\n\n(?!\|)/.exec(read('CONTRIBUTING.md'))!
    const named = matches(table, /`(?:src\/)?([a-z-]+)\/`/g)
    const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((one) => one.isDirectory())
    assert.deepEqual(
      folders.map(({ name }) => name).filter((name) => !named.includes(name)),
      [],
    )
  })

  test('dependencies.md has the reason of each dependency, and of nothing else', () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read('package.json'))
    const client = JSON.parse(read('clients/js/package.json'))
    const tools = { ...devDependencies, ...client.dependencies, ...client.devDependencies }
    const declared = Object.keys({ ...dependencies, ...tools, ...optionalDependencies })
    const rows = [...read('docs/dependencies.md').matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)]
    assert.deepEqual(sorted(rows.map(([, name]) => name!)), sorted(declared))
    // Each dependency is in the section of its kind.
    const running = matches(/## For running\n[^#]+/.exec(read('docs/dependencies.md'))![0], /^\| `([^`]+)`/gm)
    assert.deepEqual(sorted(running), sorted(Object.keys(dependencies)))
    for (const [, name, reason] of rows) assert.ok(reason!.length >= 9, `${name} has no reason`)
  })

  test('each runtime dependency is used', () => {
    const sources = files('src', '.ts').map(read).join('\n')
    const { dependencies } = JSON.parse(read('package.json'))
    const unused = Object.keys(dependencies).filter(
      // Files for the browser are not imported but served.
      (name) => ![`from '${name}'`, `import('${name}')`, `resolve('${name}`].some((use) => sources.includes(use)),
    )
    assert.deepEqual(unused, [])
  })

  test('only config.ts reads settings from the environment', () => {
    const readers = files('src', '.ts').filter((path) => /process\.env(?!\)|\['PATH'\])/.test(read(path)))
    assert.deepEqual(readers, [])
  })

  test('decision 3 has the floors as they are checked', () => {
    const rows = [...read('docs/decisions/0003-floors.md').matchAll(/^\| (\w+) \| (`.+`) \| .{6,} \|$/gm)]
    const told = rows.map(([, floor, folders]) => [floor, matches(folders!, /`([\w./-]+)`/g).sort()])
    assert.deepEqual(
      told,
      Object.entries(FLOORS)
        .map(([floor, folders]) => [floor, [...folders].sort()])
        .reverse(),
    )
  })

  test('the guides have one unit and one file of settings, whose settings exist', () => {
    const docs = files('docs', '.md').map(read).join('\n')
    assert.deepEqual(sorted(matches(docs, /(\/etc\/tundish[\w./-]+)/g)), ['/etc/tundish.env'])
    const unit = read('deploy/systemd/tundish.service')
    assert.match(unit, /^EnvironmentFile=\/etc\/tundish\.env$/m)
    assert.doesNotMatch(docs, /ExecStart=\S+tundish serve/)
    const settings = matches(read('deploy/systemd/tundish.env'), /^#?([A-Z_]+)=/gm)
    assert.ok(settings.length >= 5)
    for (const name of settings) assert.match(read('docs/configuration.md'), new RegExp(`^### ${name}$`, 'm'))
  })

  const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...files('docs', '.md')]
  for (const page of pages) {
    test(`every link of ${page} works`, () => {
      const dead = matches(read(page), /\]\(([^)\s]+)\)/g).filter((link) => !leadsSomewhere(page, link))
      assert.deepEqual(dead, [])
    })
  }
})

test('every source file that a page names exists', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...files('docs', '.md')]
  const named = pages.flatMap((page) => {
    const paths = matches(read(page), /`((?:src|lib|test|scripts|bench|migrations|deploy)\/[\w./-]+\.\w+)`/g)
    // RECORD, NOUN and NAME are placeholders.
    const real = paths.filter((path) => !/[A-Z]{4}/.test(path))
    return real.map((path) => ({ page, path: path.startsWith('lib/') ? `src/${path}` : path }))
  })
  assert.ok(named.length >= 30)
  assert.deepEqual(
    named.filter(({ path }) => !existsSync(join(ROOT, path))),
    [],
  )
})

function leadsSomewhere(page: string, link: string): boolean {
  if (/^https?:/.test(link)) return true
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? page : relative(ROOT, resolve(ROOT, dirname(page), path))
  try {
    if (anchor === undefined) return readdirSync(dirname(join(ROOT, target))).includes(target.split('/').at(-1)!)
    return matches(read(target), /^#+ (.+)$/gm).some((heading) => slug(heading) === anchor)
  } catch {
    return false
  }
}

/** The anchor of a heading on GitHub and similar hosts. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replaceAll(' ', '-')
}
