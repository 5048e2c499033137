// npm run release: makes every artefact of a version in one folder. docs/releasing.md describes them.
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { pack } from './archive.ts'
import { check } from './checks/main.ts'
import { packDebian } from './debian.ts'
import { packJavaScript, packPython } from './packages.ts'
import { PLATFORMS } from './platforms.ts'
import { has } from './run.ts'
import { billOfMaterials } from './sbom.ts'
import { ROOT, readSource } from './source.ts'
import { stage } from './stage.ts'
import { readKey, writeSums } from './sums.ts'
import { packChart, writeTexts } from './texts.ts'

const USAGE = `npm run release -- [--snapshot] [--out FOLDER] [--platform NAME]... [--check [--only NAME]...]
  --snapshot   make it from this commit although it has no tag of the version
  --out        where the artefacts go: release/VERSION by default
  --platform   only archives of this platform: ${PLATFORMS.map(({ name }) => name).join(', ')}
  --check      try the artefacts in the folder as their users would; --only NAME picks some of the checks
RELEASE_KEY_FILE names the private key that signs the checksums; without it they are not signed.
`

try {
  const options = readOptions()
  if (options.help) process.stdout.write(USAGE)
  else if (options.check) {
    const { version } = readSource({ snapshot: true })
    process.exitCode = (await check(folderOf(version, options), version, options.only)) ? 0 : 1
  } else await release(options)
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}

type Options = ReturnType<typeof readOptions>

function readOptions() {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      snapshot: { type: 'boolean', default: false },
      platform: { type: 'string', multiple: true },
      check: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      help: { type: 'boolean', default: false },
    },
  })
  const unknown = values.platform?.find((name) => !PLATFORMS.some((platform) => platform.name === name))
  if (unknown !== undefined) throw new Error(`There is no platform "${unknown}".\n${USAGE}`)
  return values
}

function folderOf(version: string, { out }: Options): string {
  return resolve(out ?? join(ROOT, 'release', version))
}

async function release(options: Options): Promise<void> {
  const source = readSource({ snapshot: options.snapshot })
  const key = readKey(process.env['RELEASE_KEY_FILE'])
  const out = folderOf(source.version, options)
  rmSync(out, { recursive: true, force: true })
  const work = join(out, '.work')
  mkdirSync(work, { recursive: true })
  const say = (name: string) =>
    process.stdout.write(`${name}  ${(statSync(join(out, name)).size / 1e6).toFixed(1)} MB\n`)

  for (const platform of PLATFORMS.filter(({ name }) => options.platform?.includes(name) ?? true)) {
    const name = `tundish-${source.version}-${platform.name}`
    const tree = join(work, name)
    stage(tree, platform, source)
    await pack(tree, name, join(out, `${name}.tar.gz`), source)
    say(`${name}.tar.gz`)
    writeFileSync(join(out, `${name}.cdx.json`), billOfMaterials(tree, name, source))
    say(`${name}.cdx.json`)
    if (platform.debian && has('dpkg-deb')) say(packDebian(tree, platform, out, source))
    rmSync(tree, { recursive: true })
  }
  say(await packChart(work, out, source))
  say(packJavaScript(out, source))
  for (const wheel of packPython(work, out, source)) say(wheel)
  for (const name of writeTexts(out, source)) say(name)
  rmSync(work, { recursive: true })
  writeSums(out, key)
  process.stdout.write(key ? 'SHA256SUMS, signed\n' : 'SHA256SUMS, not signed: RELEASE_KEY_FILE is not set\n')
}
