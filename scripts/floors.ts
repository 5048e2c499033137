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

// From the ground up; why it is so: docs/decisions/0003-floors.md.
const FLOORS = {
  lib: ['^src/lib/'],
  ground: [
    // What stands alone is ground, unless it has a floor of its own.
    '^src/(?!(app|play-money|sweep|health|description|reads|limits|metrics|server|doctor|main)[.]ts$)[^/]+[.]ts$',
    '^src/(providers|simulator|records)/',
    '^src/events/(address|catalogue|changes|outbox)[.]ts$',
  ],
  app: ['^src/(app|play-money|sweep|health|description|reads)[.]ts$', '^src/(limits|metrics)(/|[.]ts$)'],
  slices: ['^src/(public|billing|ingest|demo|backup)/', '^src/events/(?!(address|catalogue|changes|outbox)[.]ts$)'],
  operator: ['^src/admin/'],
  server: ['^src/server[.]ts$', '^src/workers/'],
  commands: ['^src/commands/', '^src/doctor(/|[.]ts$)'],
  main: ['^src/main[.]ts$'],
}

// They meet in the database, or by HTTP.
const NEIGHBOURS: { [floor: string]: Record<string, string> } = {
  ground: {
    providers: '^src/providers/',
    simulator: '^src/simulator/',
    outbox: '^src/events/(address|catalogue|changes|outbox)[.]ts$',
  },
  slices: {
    public: '^src/public/',
    billing: '^src/billing/',
    ingest: '^src/ingest/',
    events: '^src/events/(?!(address|catalogue|changes|outbox)[.]ts$)',
    backup: '^src/backup/',
    demo: '^src/demo/',
  },
}

// The demo's data comes in as everybody's does.
const ALLOWED: Record<string, string> = { demo: 'ingest' }

const everywhere = '^src/'
const floors = Object.entries(FLOORS)

const rules: Rule[] = [
  ...floors.slice(0, -1).map(([name, path], n) => rule(`up from ${name}`, { path }, { path: above(n) })),
  ...Object.values(NEIGHBOURS).flatMap(asideRules),
  rule('on no floor', { path: everywhere, pathNot: above(-1) }, {}),
  rule('to no floor', { path: everywhere }, { path: everywhere, pathNot: above(-1) }),
  // The modules of a folder may take the type of what their door hands them.
  rule('circle', { path: everywhere }, { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } }),
  rule('tools', { path: everywhere }, { path: '^(test|bench|scripts)/' }),
  // npm start installs no development tools.
  rule('development', { path: everywhere }, { dependencyTypes: ['npm-dev'] }),
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

function asideRules(slices: Record<string, string>): Rule[] {
  return Object.entries(slices).map(([name, path]) => {
    const others = Object.entries(slices).filter(([other]) => other !== name && other !== ALLOWED[name])
    return rule(`aside from ${name}`, { path }, { path: others.map(([, path]) => path) })
  })
}

function above(n: number): string[] {
  return floors.slice(n + 1).flatMap(([, path]) => path)
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
