// npm run test:deep NAME [-- OPTIONS]: runs one of the deep checks; without a name it lists them. README.md says what each proves.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** Each check: the file that runs it, what it does, and options of Node. */
const CHECKS: Record<string, { file: string; does: string; node?: string[] }> = {
  simulation: { file: 'test/simulation/main.ts', does: 'charges, imports and restores under random failures, by seed' },
  accounts: {
    file: 'test/random-accounts/main.ts',
    does: 'imports of random Stripe accounts, compared with an independent reading',
  },
  'crash-matrix': {
    file: 'test/crash-matrix/main.ts',
    does: 'a kill at every step of charges, refunds and other work',
  },
  copies: {
    file: 'test/deep/copies.ts',
    does: 'a copy by import api of a large Tundish, killed twenty times',
  },
  mutants: { file: 'test/mutants/main.ts', does: 'whether the tests notice each of many small bugs' },
  failover: { file: 'test/failover/main.ts', does: 'kills of PostgreSQL nodes under load, with automatic failover' },
  shards: { file: 'test/shards/main.ts', does: 'moves of an organization between shards, and outages of a shard' },
  generators: { file: 'test/generators/main.ts', does: 'clients generated from the description, compiled and called' },
  runtimes: { file: 'test/clients/runtimes.ts', does: 'the client package in several JavaScript runtimes' },
  statements: { file: 'test/conformance/statements/main.ts', does: 'that every SQL statement names its tenant' },
  sandbox: {
    file: 'test/payments/providers/stripe/sandbox.ts',
    does: "the contract of a provider, in Stripe's own test mode",
    node: ['--test-reporter=spec'],
  },
}

const [name, ...rest] = process.argv.slice(2)
const check = name === undefined ? undefined : CHECKS[name]
if (!check) {
  const list = Object.entries(CHECKS).map(([known, { does }]) => `  ${known.padEnd(14)}${does}`)
  const refused = name !== undefined && name !== '--help'
  const text = [`${refused ? `There is no deep check "${name}". ` : ''}npm run test:deep NAME [-- OPTIONS]`, ...list]
  process[refused ? 'stderr' : 'stdout'].write(
    `${text.join('\n')}\nWhat each proves, and how long it takes: test/deep/README.md\n`,
  )
  process.exit(refused ? 2 : 0)
}
const options = ['--disable-warning=ExperimentalWarning', ...(check.node ?? [])]
const { status } = spawnSync(process.execPath, [...options, join(ROOT, check.file), ...rest], { stdio: 'inherit' })
process.exit(status ?? 1)
