// The bill of materials of an archive in the CycloneDX format: npm's, without the packages that are not in the staged tree.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './run.ts'
import type { Source } from './source.ts'

interface Document {
  serialNumber: string
  metadata: { timestamp: string }
  components: { 'bom-ref': string; properties?: { name: string; value: string }[] }[]
  dependencies: { ref: string; dependsOn?: string[] }[]
}

/** The document of the staged `tree`, with its time and number made from the commit, so that two builds are equal. */
export function billOfMaterials(tree: string, name: string, { commit, epoch }: Source): string {
  // From the lockfile: npm refuses a tree without development packages, and lists those of all platforms.
  const options = ['--sbom-format=cyclonedx', '--omit=dev', '--sbom-type=application', '--package-lock-only']
  const document = JSON.parse(run('npm', ['sbom', ...options], { cwd: tree }).toString()) as Document
  const missing = new Set(
    document.components
      .filter(({ properties = [] }) => {
        const path = properties.find((property) => property.name === 'cdx:npm:package:path')?.value
        return path !== undefined && !existsSync(join(tree, path))
      })
      .map((component) => component['bom-ref']),
  )
  document.components = document.components.filter((component) => !missing.has(component['bom-ref']))
  document.dependencies = document.dependencies
    .filter(({ ref }) => !missing.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => !missing.has(other)) }))
  const digest = createHash('sha256').update(`${commit} ${name}`).digest('hex')
  const [, a, b, c, d, e] = /^(.{8})(.{4})(.{3})(.{3})(.{12})/.exec(digest)!
  document.serialNumber = `urn:uuid:${a}-${b}-8${c}-8${d}-${e}`
  document.metadata.timestamp = new Date(Number(epoch) * 1000).toISOString()
  return `${JSON.stringify(document, null, 2)}\n`
}
