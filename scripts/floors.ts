// Checks the layers of src, called floors: imports go down only, folders of one floor do not import each other, no circles.
import { existsSync, readdirSync } from 'node:fs'
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
  alerts: ['operator/alerts'],
  dashboard: ['operator/dashboard'],
  serving: ['server/listeners', 'server/workers'],
  commands: ['cli/commands'],
  main: ['main.ts'],
}

// Exceptions within a floor: a folder, and the folders of its floor that it may import.
const ALLOWED: Record<string, string[]> = {
  // A setting names roles of operators.
  'config.ts': ['core/tenants'],
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

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const BILLING = 'payments/billing'
// Of each kind of movement: charge, refund.
const KIND_FOLDERS = readdirSync(join(ROOT, 'src', BILLING)).filter((name) =>
  existsSync(join(ROOT, 'src', BILLING, name, 'kind.ts')),
)

// The stairs of billing from the lowest up: a folder or file may import from those below its own. Folders of one stair do not
// know each other: src/payments/billing/README.md.
export const STAIRS: Readonly<Record<string, string[]>> = {
  words: ['amount.ts', 'body.ts', 'context.ts', 'lock-out-erasure.ts', 'route.ts'],
  rates: ['rates'],
  credits: ['credits'],
  ledger: ['ledger'],
  movement: ['movement'],
  kinds: KIND_FOLDERS,
  list: ['kinds.ts'],
  above: ['reconcile', 'top-up'],
  api: ['api.ts', 'finance', 'list-page.ts', 'lists.ts', 'my-assets.ts', 'settling.ts', 'transaction-report.ts'],
}

const everywhere = '^src/'
const floors = Object.entries(FLOORS)

const stairs = Object.entries(STAIRS).map(
  ([name, folders]) => [name, folders.map((one) => `${BILLING}/${one}`)] as const,
)

const kinds = KIND_FOLDERS.map((name) => `${BILLING}/${name}`)

const rules: Rule[] = [
  ...upwards('up from', floors),
  ...upwards('up the stairs from', stairs),
  ...kinds.map((kind) =>
    // Above them, only kinds.ts knows more than one kind; to know one, its object is imported from there.
    rule(
      `past kinds.ts to ${kind}`,
      { path: `^src/${BILLING}/`, pathNot: paths([kind, `${BILLING}/kinds.ts`]) },
      inside([kind]),
    ),
  ),
  ...stairs.flatMap(([, names]) => asideOf(names.filter((name) => !name.endsWith('.ts')))),
  rule('on no stair', { path: `^src/${BILLING}/`, pathNot: paths(above(stairs, -1)) }, {}),
  rule('to no stair', { path: everywhere }, { path: `^src/${BILLING}/`, pathNot: paths(above(stairs, -1)) }),
  ...floors.flatMap(([, folders]) => asideOf(folders)),
  rule('on no floor', { path: everywhere, pathNot: paths(above(floors, -1)) }, {}),
  rule('to no floor', { path: everywhere }, { path: everywhere, pathNot: paths(above(floors, -1)) }),
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

function asideOf(folders: string[]): Rule[] {
  return folders.map((folder) => asideRule(folder, folders))
}

function asideRule(folder: string, floor: string[]): Rule {
  const others = floor.filter((other) => other !== folder && !ALLOWED[folder]?.includes(other))
  return rule(`aside from ${folder}`, inside([folder]), others.length > 0 ? inside(others) : { path: '^$' })
}

type Levels = readonly (readonly [name: string, folders: string[]])[]

function upwards(title: string, levels: Levels): Rule[] {
  const below = levels.slice(0, -1)
  return below.map(([name, folders], n) => rule(`${title} ${name}`, inside(folders), inside(above(levels, n))))
}

function above(levels: Levels, n: number): string[] {
  return levels.slice(n + 1).flatMap(([, folders]) => folders)
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
  const found = await breaches(ROOT)
  for (const breach of found) process.stdout.write(`${breach}\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}
