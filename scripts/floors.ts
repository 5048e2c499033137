// Checks the layers of src, called floors: imports go down only, folders of one floor do not import each other, no circles.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  cruise,
  type ICruiseOptions,
  type ICruiseResult,
  type IRegularForbiddenRuleType as Rule,
} from 'dependency-cruiser'

// From the lowest floor up: a folder may import from the floors below its own. Reasons: docs/decisions/0003-floors.md.
export const FLOORS: Readonly<Record<string, string[]>> = {
  lib: ['lib'],
  ground: ['config.ts', 'core/tenants', 'core/records', 'payments/providers', 'simulators'],
  promises: ['core/events', 'core/audit', 'core/limits', 'core/lists'],
  erasure: ['core/erasure', 'core/metrics', 'data/figures', 'operations/failover'],
  people: ['core/people'],
  app: ['app.ts'],
  slices: [
    'data/public',
    'payments/billing',
    'data/ingest',
    'operations/backup',
    'cli/demo',
    'operations/master-key',
    'server/pages',
    'data/sync',
  ],
  notifications: ['server/notifications'],
  shards: ['operations/shards'],
  operator: ['operator/admin'],
  doctor: ['operator/doctor'],
  dashboard: ['operator/dashboard'],
  serving: ['server/listeners', 'server/workers'],
  commands: ['cli/commands'],
  main: ['main.ts'],
}

// Exceptions within a floor: a folder, and the folders of its floor that it may import.
const ALLOWED: Record<string, string[]> = {
  // They need the types of tenants and settings.
  'core/tenants': ['config.ts', 'core/records'],
  'payments/providers': ['config.ts', 'core/tenants', 'core/records'],
  simulators: ['config.ts'],
  // Records that are written through the data API are imported.
  'data/public': ['data/ingest'],
  // The demo imports its data like any other.
  'cli/demo': ['data/ingest'],
  // A worker is a server.
  'server/workers': ['server/listeners'],
}

const everywhere = '^src/'
const floors = Object.entries(FLOORS)

const rules: Rule[] = [
  ...floors.slice(0, -1).map(([name, folders], n) => rule(`up from ${name}`, inside(folders), inside(above(n)))),
  ...floors.flatMap(([, folders]) => folders.map((folder) => asideRule(folder, folders))),
  rule('on no floor', { path: everywhere, pathNot: paths(above(-1)) }, {}),
  rule('to no floor', { path: everywhere }, { path: everywhere, pathNot: paths(above(-1)) }),
  rule('circle', { path: everywhere }, { circular: true }),
  rule('tools', { path: everywhere }, { path: '^(test|bench|scripts)/' }),
  // The two halves of the product meet in the operator's wing and in notifications only.
  rule('payments to data', { path: '^src/payments/' }, { path: '^src/data/' }),
  rule('data to billing', { path: '^src/data/' }, { path: '^src/payments/billing/' }),
  // The sync is a client of a server, which may run elsewhere.
  rule('client', { path: everywhere, pathNot: '^src/(data/sync|cli/commands)/' }, { path: '^clients/' }),
  // npm start installs no development packages. Imports of types are erased, and a provider's types check its simulator.
  rule('development', { path: everywhere }, { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] }),
  rule('undeclared', { path: everywhere }, { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] }),
]

const OPTIONS: ICruiseOptions = {
  // TypeScript 7 cannot be its parser. Without a parser the tool would read nothing and report nothing.
  parser: 'swc',
  tsPreCompilationDeps: true,
  doNotFollow: { path: 'node_modules' },
  enhancedResolveOptions: { extensions: ['.ts'] } as ICruiseOptions['enhancedResolveOptions'],
  validate: true,
  ruleSet: { forbidden: rules },
}

function asideRule(folder: string, floor: string[]): Rule {
  const others = floor.filter((other) => other !== folder && !ALLOWED[folder]?.includes(other))
  return rule(`aside from ${folder}`, inside([folder]), others.length > 0 ? inside(others) : { path: '^$' })
}

function above(n: number): string[] {
  return floors.slice(n + 1).flatMap(([, folders]) => folders)
}

function inside(folders: string[]): { path: string[] } {
  return { path: paths(folders) }
}

function paths(folders: string[]): string[] {
  return folders.map((name) => (name.endsWith('.ts') ? `^src/${name.replace('.', '[.]')}$` : `^src/${name}/`))
}

function rule(name: string, from: Rule['from'], to: Rule['to']): Rule {
  return { name, severity: 'error', from, to }
}

/** The breaches of the rules in `root`/src, one line each. Throws if the modules were not read. */
export async function breaches(root: string): Promise<string[]> {
  const { output } = await cruise(['src'], { ...OPTIONS, baseDir: root })
  const { modules, summary } = output as ICruiseResult
  const files = (await readdir(join(root, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'))
  const importing = modules.filter(({ source, dependencies }) => source.startsWith('src/') && dependencies.length > 0)
  // Few modules have no imports. If most have none, they were not parsed.
  if (importing.length < files.length * 0.7) {
    throw new Error(`Only ${importing.length} of ${files.length} modules show imports: they were not read.`)
  }
  return summary.violations.map(({ rule, from, to, cycle }) => {
    const way = cycle ? cycle.map(({ name }) => name).join(' → ') : to
    return `${rule.name}: ${from} → ${way}`
  })
}

if (import.meta.main) {
  const found = await breaches(fileURLToPath(new URL('..', import.meta.url)))
  for (const breach of found) process.stdout.write(`${breach}\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}
