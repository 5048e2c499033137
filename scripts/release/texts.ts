// The artefacts that are copied with the version in them: chart, Dockerfile, compose file, descriptions, notes.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pack } from './archive.ts'
import { run } from './run.ts'
import { ROOT, type Source } from './source.ts'

/** Packs the Helm chart with both of its versions set. */
export async function packChart(work: string, out: string, source: Source): Promise<string> {
  const folder = join(work, 'chart')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  run('tar', ['x', '--strip-components=2', '-C', folder], {
    input: run('git', ['archive', source.commit, 'deploy/helm'], { cwd: ROOT }),
  })
  const file = join(folder, 'tundish/Chart.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/^((?:appV|v)ersion:) 0\.0\.0$/gm, `$1 ${source.version}`))
  const name = `tundish-chart-${source.version}.tgz`
  await pack(join(folder, 'tundish'), 'tundish', join(out, name), source)
  return name
}

/** Writes the Dockerfile, compose.yaml with its .env, and the OpenAPI descriptions. */
export function writeTexts(out: string, { version }: Source): string[] {
  const copies = ['Dockerfile', 'compose.yaml'].map(
    (name) => [name, readFileSync(join(ROOT, 'deploy/container', name))] as const,
  )
  const descriptions = (['public', 'operator'] as const).map((side) => {
    const text = run(
      join(ROOT, 'bin/pinned-node'),
      ['--dev', '--disable-warning=ExperimentalWarning', 'scripts/openapi.ts', side],
      { cwd: ROOT },
    )
    return [`openapi-${side}-${version}.json`, text] as const
  })
  const texts = [
    ...copies,
    ['compose.env', `TUNDISH_VERSION=${version}\n`] as const,
    ...descriptions,
    ['NOTES.md', notes(version)] as const,
  ]
  for (const [name, text] of texts) writeFileSync(join(out, name), text)
  return texts.map(([name]) => name)
}

/** The section of the changelog about this version. */
function notes(version: string): string {
  const changes = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
  const [, section] =
    new RegExp(`^(## ${version.replaceAll('.', '\\.')}\\b.*?)(?=^## |$(?![^]))`, 'ms').exec(changes) ?? []
  if (!section) throw new Error(`CHANGELOG.md has no section "## ${version}".`)
  return `${section.trim()}\n`
}
