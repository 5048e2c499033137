// The client packages: JavaScript for npm, Python for pip, with the version of the release.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { run } from './run.ts'
import { ROOT, type Source } from './source.ts'

/** Packs @tundish/client. It is built below the checkout, where its development packages are found. */
export function packJavaScript(out: string, source: Source): string {
  const folder = join(ROOT, '.cache/release/client')
  checkOut('clients/js', folder, source)
  const file = join(folder, 'package.json')
  writeFileSync(
    file,
    `${JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), version: source.version }, null, 2)}\n`,
  )
  symlinkSync(join(ROOT, 'clients/js/node_modules'), join(folder, 'node_modules'))
  const typesOf = [
    '--dev',
    '--disable-warning=ExperimentalWarning',
    'scripts/client-types.ts',
    join(folder, 'src/schema.ts'),
  ]
  run('bin/pinned-node', typesOf, { cwd: ROOT })
  run('npm', ['exec', '--', 'tsc'], { cwd: folder })
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', out], { cwd: folder })
  return `tundish-client-${source.version}.tgz`
}

/** Builds the wheels of the Python packages. Needs python3 with pip. */
export function packPython(work: string, out: string, source: Source): string[] {
  return ['python', 'dlt']
    .filter((client) => existsSync(join(ROOT, 'clients', client, 'pyproject.toml')))
    .map((client) => {
      const folder = join(work, `python-${client}`)
      checkOut(`clients/${client}`, folder, source)
      const file = join(folder, 'pyproject.toml')
      writeFileSync(file, readFileSync(file, 'utf8').replace(/^version = ".*"$/m, `version = "${source.version}"`))
      const wheels = join(work, `wheels-${client}`)
      rmSync(wheels, { recursive: true, force: true })
      run('python3', ['-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', wheels, folder], {
        env: { ...process.env, SOURCE_DATE_EPOCH: source.epoch },
      })
      const [wheel] = readdirSync(wheels)
      renameSync(join(wheels, wheel!), join(out, wheel!))
      return wheel!
    })
}

function checkOut(path: string, folder: string, { commit }: Source): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  run('tar', ['x', '--strip-components=2', '-C', folder], {
    input: run('git', ['archive', commit, path], { cwd: ROOT }),
  })
}
