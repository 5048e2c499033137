// Checks the floors of the house: imports go down only, slices of one floor do not know each other, nothing goes in circles.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  cruise,
  type ICruiseOptions,
  type ICruiseResult,
  type IRegularForbiddenRuleType as Rule,
} from 'dependency-cruiser'

// From the ground up: a folder imports from the floors below its own. Why: docs/decisions/0003-floors.md.
export const FLOORS: Readonly<Record<string, string[]>> = {
  lib: ['lib'],
  ground: ['config.ts', 'tenants', 'records', 'providers', 'simulator'],
  promises: ['events', 'audit', 'limits', 'lists'],
  erasure: ['erasure', 'metrics', 'figures', 'failover'],
  app: ['app.ts'],
  slices: ['public', 'billing', 'ingest', 'backup', 'demo', 'master-key', 'pages', 'sync'],
  notifications: ['notifications'],
  shards: ['shards'],
  operator: ['admin'],
  doctor: ['doctor'],
  dashboard: ['dashboard'],
  serving: ['server', 'workers'],
  commands: ['commands'],
  main: ['main.ts'],
}

// Folders of one floor that may use a neighbour: the folder, and whom it may use.
const ALLOWED: Record<string, string[]> = {
  // An adapter and the log speak of tenants and settings.
  tenants: ['config.ts', 'records'],
  providers: ['config.ts', 'tenants', 'records'],
  simulator: ['config.ts'],
  // The demo's data comes in as everybody's does.
  demo: ['ingest'],
  // A worker serves.
  workers: ['server'],
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
  // The sync is a client of a server that may be elsewhere.
  rule('client', { path: everywhere, pathNot: '^src/(sync|commands)/' }, { path: '^clients/' }),
  // npm start installs no development tools; types alone are erased, and those of a provider check its simulator.
  rule('development', { path: everywhere }, { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] }),
  rule('undeclared', { path: everywhere }, { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] }),
]

const OPTIONS: ICruiseOptions = {
  // TypeScript 7 cannot be its parser; with none at all the tool reads nothing, and finds nothing wrong.
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

/** The breaches of the rules in `root`/src, a line each. Throws when the modules were not really read. */
export async function breaches(root: string): Promise<string[]> {
  const { output } = await cruise(['src'], { ...OPTIONS, baseDir: root })
  const { modules, summary } = output as ICruiseResult
  const files = (await readdir(join(root, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'))
  const importing = modules.filter(({ source, dependencies }) => source.startsWith('src/') && dependencies.length > 0)
  // Few modules import nothing at all; a reader that understands nothing finds no imports anywhere.
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
