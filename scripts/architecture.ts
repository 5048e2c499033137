// Draws the picture of ARCHITECTURE.md from the imports of src: the wings, and how many imports lead from one to another.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SRC = join(ROOT, 'src')
const PAGE = join(ROOT, 'ARCHITECTURE.md')

/** From the top of the picture to its bottom: a wing imports from those below it. */
const ORDER = [
  'main, app, config',
  'cli',
  'server',
  'operator',
  'operations',
  'data',
  'payments',
  'simulators',
  'core',
  'lib',
]

/** The wing of a file; the files directly in src are one. */
const wingOf = (path: string) => (path.includes('/') ? path.split('/')[0]! : ORDER[0]!)

interface Wing {
  files: number
  lines: number
  /** The number of imports by the wing they lead to. */
  imports: Map<string, number>
}

function readWings(): Map<string, Wing> {
  const wings = new Map<string, Wing>(ORDER.map((name) => [name, { files: 0, lines: 0, imports: new Map() }]))
  for (const path of globSync('**/*.ts', { cwd: SRC })) {
    const text = readFileSync(join(SRC, path), 'utf8')
    const name = wingOf(path)
    const wing = wings.get(name)
    if (!wing) throw new Error(`src/${name} is not in the picture: add it to ORDER.`)
    wing.files += 1
    wing.lines += text.split('\n').length - 1
    for (const [, target] of text.matchAll(/(?:from |import\()'(\.[^']+\.ts)'/g)) {
      const to = wingOf(relative(SRC, join(SRC, dirname(path), target!)))
      if (to !== name) wing.imports.set(to, (wing.imports.get(to) ?? 0) + 1)
    }
  }
  return wings
}

function picture(wings: Map<string, Wing>): string {
  const rows = [...wings].map(([name, { files, lines, imports }]) => {
    const to = ORDER.flatMap((other) => (imports.has(other) ? [`${other} ${imports.get(other)}`] : []))
    return `${name.padEnd(18)}${String(files).padStart(4)} files ${String(lines).padStart(6)} lines   → ${to.join(', ') || 'nothing'}`
  })
  return ['```', ...rows, '```'].join('\n')
}

const BEGIN = '<!-- The picture: written by scripts/architecture.ts. -->'
const END = '<!-- The end of the picture. -->'

const page = readFileSync(PAGE, 'utf8')
const [before, after] = [page.split(BEGIN)[0]!, page.split(END)[1]!]
const current = `${before}${BEGIN}\n${picture(readWings())}\n${END}${after}`
if (process.argv[2] === '--write') writeFileSync(PAGE, current)
else process.stdout.write(`${picture(readWings())}\n`)
