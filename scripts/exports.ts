// Checks that every exported function, class and constant of src is imported by another file, so that dead code is found.
// Types are not checked: those in the signature of an exported function may be exported without being imported.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from '@swc/core'

/** The source texts by their paths from the root of the repository. */
export type Sources = ReadonlyMap<string, string>

interface Node {
  type: string
  [field: string]: unknown
}

const FOLDERS = ['bench', 'clients/js', 'scripts', 'src', 'test']

/** The exported values of `src` that no other file imports, as `FILE#NAME`. */
export function unusedExports(sources: Sources): string[] {
  const exported = new Set<string>()
  const used = new Set<string>()
  for (const [file, source] of sources) {
    const use = (from: unknown, name: string) => used.add(`${normalize(join(dirname(file), String(from)))}#${name}`)
    const { body } = parseSync(source, { syntax: 'typescript' }) as unknown as { body: Node[] }
    for (const node of body) {
      for (const name of namesExported(node)) exported.add(`${file}#${name}`)
      for (const [from, name] of namesImported(node)) use(from, name)
    }
    // A module that is loaded on demand counts as used completely, because the code that uses it is not analyzed.
    for (const [, from] of source.matchAll(/\bimport\('(\.[^']+)'\)/g)) use(from, '*')
  }
  const isUsed = (name: string) => used.has(name) || used.has(name.replace(/#.*/, '#*'))
  return [...exported].filter((name) => name.startsWith('src/') && !isUsed(name)).sort()
}

function namesExported(node: Node): string[] {
  if (node.type === 'ExportDeclaration') return namesDeclared(node['declaration'] as Node)
  if (node.type === 'ExportNamedDeclaration')
    return specifiersOf(node).map(({ exported, orig }) => nameOf(exported ?? orig))
  return []
}

function namesDeclared(declaration: Node): string[] {
  const { type, declarations, identifier, id } = declaration
  if (type === 'TsInterfaceDeclaration' || type === 'TsTypeAliasDeclaration') return []
  if (!Array.isArray(declarations)) return [nameOf(identifier ?? id)]
  return declarations.flatMap((one: { id: Node }) => namesBound(one.id))
}

/** The names that a pattern binds: `name`, `{ name }`, `[name]`. */
function namesBound(pattern: Node): string[] {
  const { elements, properties } = pattern as { elements?: (Node | null)[]; properties?: Node[] }
  if (elements) return elements.flatMap((element) => (element ? namesBound(element) : []))
  if (properties) return properties.map(({ value, key }) => nameOf(value ?? key))
  return [nameOf(pattern)]
}

function namesImported(node: Node): [from: string, name: string][] {
  const source = node['source'] as { value: string } | null | undefined
  if (!source?.value.startsWith('.')) return []
  if (node.type === 'ExportAllDeclaration') return [[source.value, '*']]
  return specifiersOf(node).map(({ type, imported, local, orig }) => [
    source.value,
    /Namespace/.test(type) ? '*' : nameOf(imported ?? orig ?? local),
  ])
}

const specifiersOf = ({ specifiers }: Node) => (specifiers ?? []) as Node[]

const nameOf = (identifier: unknown): string => (identifier as { value: string }).value

function readSources(root: string): Sources {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  const written = files.filter((file) => /[.]m?ts$/.test(file) && !file.includes('node_modules'))
  return new Map(written.map((file) => [file, readFileSync(join(root, file), 'utf8')]))
}

if (import.meta.main) {
  const found = unusedExports(readSources(fileURLToPath(new URL('..', import.meta.url))))
  for (const name of found) process.stdout.write(`${name} is imported nowhere: remove it, or its "export".\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}
