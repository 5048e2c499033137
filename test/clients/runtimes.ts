// Prints a table of runtimes: whether the packed client works in each. npm run test:deep runtimes [-- --only NAME]
// Each comes from npm into a folder that is removed; one that cannot be had is named with the reason.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isDeepStrictEqual, parseArgs, promisify } from 'node:util'
import { type Billing, startBilling } from '../support/billing.ts'
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import { configOf, EXPECTED, findNode20, install, openRedirects, openShop } from './packed.ts'

const exec = promisify(execFile)
const TIME_MS = 60_000

/** Runs the scenario with a configuration, and returns the version of the runtime and what the scenario returned. */
type Runtime = (folder: string, config: object) => Promise<{ version: string; result: unknown }>

class Missing extends Error {}

const node20 = findNode20()

const RUNTIMES: Record<string, Runtime> = {
  'Node 24': (folder, config) => asProgram(process.execPath, ['run-scenario.mjs'], folder, config),
  'Node 20': (folder, config) => {
    if (!node20) throw new Missing('there is none on the PATH; NODE20 may name one')
    return asProgram(node20, ['run-scenario.mjs'], folder, config)
  },
  Bun: async (folder, config) => {
    await fromNpm('bun')
    const [program] = globSync(join(tools, 'node_modules/@oven/*/bin/bun'))
    if (!program) throw new Missing('npm has no program of it for this machine')
    return asProgram(program, ['run', 'run-scenario.mjs'], folder, config)
  },
  Deno: async (folder, config) => {
    const args = ['run', '--no-config', '--node-modules-dir=manual', '--allow-net', '--allow-env', '--allow-read']
    return asProgram(await fromNpm('deno'), [...args, 'run-scenario.mjs'], folder, config)
  },
  workerd: inWorkerd,
}

const tools = mkdtempSync(join(tmpdir(), 'tundish-runtimes-'))

/** The program of an npm package, which is installed for this run only. */
async function fromNpm(name: string): Promise<string> {
  try {
    // Without scripts: the programs come in their own packages.
    await exec('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', tools, name])
  } catch (error) {
    throw new Missing(
      `npm could not install ${name}: ${lastLine((error as { stderr?: string }).stderr ?? String(error))}`,
    )
  }
  return join(tools, 'node_modules/.bin', name)
}

async function asProgram(program: string, args: string[], cwd: string, config: object) {
  const version = await versionOf(program)
  const env = { PATH: process.env['PATH'], HOME: tools, NO_COLOR: '1', CONFIG: JSON.stringify(config) }
  const { stdout } = await exec(program, args, { cwd, env, timeout: TIME_MS })
  return { version, result: JSON.parse(stdout) }
}

async function versionOf(program: string): Promise<string> {
  try {
    const { stdout } = await exec(program, ['--version'])
    return /\d[\w.-]*/.exec(stdout)?.[0] ?? ''
  } catch (error) {
    throw new Missing(lastLine(String(error)))
  }
}

/** The runtime of Cloudflare's workers: one bundled module, no file, no process. */
async function inWorkerd(folder: string, config: object) {
  await fromNpm('workerd')
  // Its command is a script, which a signal ends without the program that it started.
  const program: string = createRequire(tools)(join(tools, 'node_modules/workerd')).default
  const bundler = await fromNpm('esbuild')
  const version = await versionOf(program)
  await exec(bundler, ['workerd.mjs', '--bundle', '--format=esm', '--outfile=worker.js'], { cwd: folder })
  writeFileSync(join(folder, 'config.capnp'), WORKER)
  const child = spawn(program, ['serve', '--control-fd=1', 'config.capnp'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [line] = await once(createInterface({ input: child.stdout! }), 'line', {
      signal: AbortSignal.timeout(TIME_MS),
    })
    const { port } = JSON.parse(line) as { port: number }
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: JSON.stringify(config) })
    return { version, result: await response.json() }
  } finally {
    child.kill()
  }
}

const WORKER = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "internet", network = (allow = ["public", "private"]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01",
);
`

const lastLine = (text: string) => text.trim().split('\n').at(-1)!

const { values } = parseArgs({ options: { only: { type: 'string' } } })

/** Tried with the header's name as the data API wants it; where the runtime writes it in lower case, with any case. */
async function row(name: string, runtime: Runtime, folder: string, servers: Billing[]): Promise<string[]> {
  let found: unknown
  for (const [n, billing] of servers.entries()) {
    try {
      const config = await configOf(billing, await openShop(billing), redirects.url)
      const { version, result } = await runtime(folder, config)
      const { horizon, ...rest } = result as { horizon?: string }
      if (isDeepStrictEqual(rest, EXPECTED) && horizon)
        return [name, version, 'yes', n === 0 ? 'as written' : 'lower case']
      found = result
    } catch (error) {
      if (error instanceof Missing) return [name, '', `not tried: ${error.message}`, '']
      found = (error as { stderr?: string }).stderr || String(error)
    }
  }
  process.exitCode = 1
  return [name, '', `no: ${JSON.stringify(found)}`, '']
}

await globalSetup()
const servers = [await startBilling(), await startBilling({ SECRET_HEADER_CASE: 'any' })]
const redirects = await openRedirects(servers[0]!.server.url)
const folder = await install()
try {
  console.log('| runtime | version | works | names of headers |\n|---|---|---|---|')
  for (const [name, runtime] of Object.entries(RUNTIMES)) {
    if (values.only && !name.includes(values.only)) continue
    console.log(`| ${(await row(name, runtime, folder, servers)).join(' | ')} |`)
  }
} finally {
  redirects.close()
  for (const server of servers) await server.stop()
  for (const path of [folder, tools]) rmSync(path, { recursive: true, force: true })
  await globalTeardown()
}
