// Checks that files and functions are short enough to read (CONTRIBUTING, "A file reads down the page"); `--table` prints a summary.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from '@swc/core'

const FILE_LIMIT = 250
const FUNCTION_LIMIT = 60

// Exceptions. One that is no longer needed is an error too, so that these lists stay current.
const LONG_FILES: Readonly<Record<string, string>> = {
  'src/operator/admin/tenants.ts': 'Declarations of two nouns.',
}
const LONG_FUNCTIONS: Readonly<Record<string, string>> = {
  'src/app.ts#openApp': 'The parts in the order they are opened, each with its close.',
  'src/config.ts#readConfig': 'The table of settings.',
  'src/operator/admin/keys.ts#keysOf': 'A list of declarations.',
  'src/operator/dashboard/pages/subscriptions.ts#subscriptions': 'A page: its query, filters, columns and rows.',
  // Factories: small functions that share variables.
  'src/core/events/dispatcher.ts#openDispatcher': 'A factory.',
  'src/lib/fair-queue.ts#createFairQueue': 'A factory.',
  'src/lib/http/graceful-stop.ts#installGracefulStop': 'A factory.',
  'src/lib/pg/pipelines.ts#openPipelines': 'A factory.',
  'src/core/limits/rate.ts#openRateLimiter': 'A factory.',
  'src/core/lists/replica/replica-source.ts#openReplicaSource': 'A factory.',
  'src/operator/dashboard/identity-provider.ts#openIdentityProvider': 'A factory.',
  'src/payments/providers/open.ts#openProviders': 'A factory.',
  'src/data/sync/duckdb.ts#duckdbTarget': 'A factory.',
  'src/data/sync/sqlite.ts#sqliteTarget': 'A factory.',
}

const FOLDERS = ['bench', 'clients/js/src', 'scripts', 'src']
const WRITTEN_BY_A_PROGRAM = new Set(['clients/js/src/schema.ts'])

export interface Size {
  /** `FILE`, or `FILE#FUNCTION`. */
  name: string
  lines: number
}

interface Node {
  type: string
  span: { start: number; end: number }
  [field: string]: unknown
}

const FUNCTION =
  /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|MethodProperty|ClassMethod|PrivateMethod|Constructor)$/

/** The functions of a source text. An anonymous function has the name of the nearest named construct around it. */
export function functionsOf(file: string, source: string): Size[] {
  // Spans count bytes from the start of everything parsed so far: the added semicolon marks where this text begins.
  const marked = Buffer.from(`;${source}`)
  const tree = parseSync(marked.toString(), { syntax: 'typescript' }) as unknown as { body: Node[] }
  const start = tree.body[0]!.span.start
  const found: Size[] = []
  visit(tree, '', ({ span }, name) => {
    const text = marked.toString('utf8', span.start - start, span.end - start)
    found.push({ name: `${file}#${name}`, lines: lineCount(text) })
  })
  return found
}

function visit(value: unknown, around: string, take: (node: Node, name: string) => void): void {
  if (typeof value !== 'object' || value === null) return
  const node = value as Node
  const name = nameOf(node) ?? around
  if (FUNCTION.test(node.type)) take(node, name)
  for (const child of Object.values(node)) visit(child, name, take)
}

function nameOf({ identifier, id, key }: Node): string | undefined {
  const named = (identifier ?? id ?? key) as { value?: unknown } | null | undefined
  return typeof named?.value === 'string' ? named.value : undefined
}

const lineCount = (text: string): number => text.split('\n').length

function measure(root: string): { files: Size[]; functions: Size[] } {
  const files: Size[] = []
  const functions: Size[] = []
  for (const folder of FOLDERS) {
    for (const path of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      const name = join(folder, path)
      if (!/[.](ts|css)$/.test(name) || WRITTEN_BY_A_PROGRAM.has(name) || name.includes('node_modules')) continue
      const source = readFileSync(join(root, name), 'utf8')
      files.push({ name, lines: lineCount(source.trimEnd()) })
      if (name.endsWith('.ts')) functions.push(...functionsOf(name, source))
    }
  }
  return { files, functions }
}

/** Files and functions that are too long, and needless exceptions, one sentence each. */
export function faults(root: string): string[] {
  const { files, functions } = measure(root)
  return [...tooLong(files, FILE_LIMIT, LONG_FILES), ...tooLong(functions, FUNCTION_LIMIT, LONG_FUNCTIONS)]
}

function tooLong(sizes: Size[], limit: number, excepted: Readonly<Record<string, string>>): string[] {
  const long = sizes.filter(({ lines }) => lines > limit)
  const needless = Object.keys(excepted).filter((name) => !long.some((size) => size.name === name))
  return [
    ...long
      .filter(({ name }) => !excepted[name])
      .map(({ name, lines }) => `${name} has ${lines} lines; the limit is ${limit}.`),
    ...needless.map((name) => `${name} has at most ${limit} lines: remove its exception from scripts/sizes.ts.`),
  ]
}

function table(root: string): string {
  const { files, functions } = measure(root)
  const source = files.filter(({ name }) => /^src\/.*[.]ts$/.test(name))
  const own = functions.filter(({ name }) => name.startsWith('src/'))
  const rows = [
    ['files of src', source],
    ['functions of src', own],
  ] as const
  return rows
    .map(([title, sizes]) => {
      const lines = sizes.map((size) => size.lines).sort((a, b) => a - b)
      const at = (share: number) => lines[Math.min(lines.length - 1, Math.floor(lines.length * share))]
      return `${title}: ${lines.length}, median ${at(0.5)} lines, p90 ${at(0.9)}, longest ${lines.at(-1)}\n`
    })
    .join('')
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  if (process.argv[2] === '--table') process.stdout.write(table(root))
  const found = faults(root)
  for (const fault of found) process.stdout.write(`${fault}\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}
