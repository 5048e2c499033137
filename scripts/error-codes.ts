// Checks that every error code of the source is described for an API and in docs/errors.md; `--write` writes that page's table.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OPERATOR_CODES, PUBLIC_CODES } from '../src/core/records/error-codes.ts'

const DESCRIBED = { ...OPERATOR_CODES, ...PUBLIC_CODES }
const TABLES = /error-codes[.]ts$/

/** The mistakes, one sentence each. */
export function faults(root: string): string[] {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !TABLES.test(name))
    .map((name) => readFileSync(join(root, 'src', name), 'utf8'))
    .join('\n')
  const page = readFileSync(join(root, 'docs/errors.md'), 'utf8')
  const rows = new Map(
    [...page.matchAll(/^\| `([a-z_]+)` \| ([0-9]{3}) \| (.+) \|$/gm)].map(([, code, ...row]) => [code!, row]),
  )
  return [...undescribed(sources), ...unused(sources), ...undocumented(rows)]
}

function undescribed(sources: string): string[] {
  const found = []
  for (const [, status = '503', code] of sources.matchAll(
    /(?:new ApiError\(\s*([0-9]+),\s*|tryLater\(\s*)'([^']+)'/g,
  )) {
    const described = DESCRIBED[code!]
    if (!described) found.push(`src/core/records/error-codes.ts does not describe "${code}".`)
    else if (described.status !== Number(status))
      found.push(`"${code}" is described with ${described.status}, and sent with ${status}.`)
  }
  return found
}

function unused(sources: string): string[] {
  return Object.keys(DESCRIBED)
    .filter((code) => !sources.includes(`'${code}'`))
    .map((code) => `No source sends "${code}".`)
}

function undocumented(rows: Map<string, string[]>): string[] {
  const missing = Object.entries(DESCRIBED)
    .filter(([code, { status, meaning }]) => rows.get(code)?.join() !== `${status},${meaning}`)
    .map(([code, { status, meaning }]) => `docs/errors.md needs the row: | \`${code}\` | ${status} | ${meaning} |`)
  const strange = [...rows.keys()]
    .filter((code) => !DESCRIBED[code])
    .map((code) => `docs/errors.md has "${code}", which no API sends.`)
  return [...missing, ...strange]
}

function writeTable(path: string): void {
  const rows = Object.entries(DESCRIBED)
    .sort(([a, one], [b, other]) => one.status - other.status || (a < b ? -1 : 1))
    .map(([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |\n`)
  const page = readFileSync(path, 'utf8').replace(/^\| `[a-z_]+` \|.*\n/gm, '')
  writeFileSync(path, page.replace('|---|---|---|\n', `|---|---|---|\n${rows.join('')}`))
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  if (process.argv[2] === '--write') writeTable(join(root, 'docs/errors.md'))
  const found = faults(root)
  for (const fault of found) process.stdout.write(`${fault}\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}
