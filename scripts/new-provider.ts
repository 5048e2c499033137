// npm run new-provider NAME: copies the adapter for Airwallex, its test server and its tests under another name, to begin an adapter with.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FOLDERS = ['src/payments/providers', 'test/payments/providers']
const MODEL = 'airwallex'
const NEXT = `
Next, in this order; docs/providers.md has more.
  1. npm test -- 'test/payments/providers/NAME/*.test.ts' passes: it is still the copy.
  2. Read the provider's reference, and write down where it is silent. Choose the traits in NAME.ts.
  3. Change the test server (dialect.ts) to what the reference says, until the contract test fails; then the adapter, until it passes.
  4. Answer each surprise in surprises.test.ts with a check, or with why it cannot happen.
  5. Register the adapter in src/payments/providers/adapters.ts: keys, webhooks, ids, describe.
     Its address in tests is a setting, as PRIMER_API_URL in src/config.ts is.
  6. Add a page docs/NAME.md, and a row in docs/providers.md.
`

/** The text under the new name: `airwallex`, `Airwallex` and `AIRWALLEX` are replaced. */
const renamed = (text: string, name: string) =>
  text
    .replaceAll(MODEL, name)
    .replaceAll('Airwallex', `${name[0]!.toUpperCase()}${name.slice(1)}`)
    .replaceAll('AIRWALLEX', name.toUpperCase())

/** Copies the folders under `root`; returns the new files. Throws for a name that cannot be used. */
export function copyProvider(root: string, name: string | undefined): string[] {
  if (name === undefined || !/^[a-z][a-z0-9]{1,30}$/.test(name))
    throw new Error('Usage: npm run new-provider NAME, with a name of small letters and digits.')
  const taken = FOLDERS.find((folder) => existsSync(join(root, folder, name)))
  if (taken !== undefined) throw new Error(`${taken}/${name} exists already.`)
  return FOLDERS.flatMap((folder) => {
    const target = join(root, folder, name)
    cpSync(join(root, folder, MODEL), target, { recursive: true })
    return readdirSync(target).map((file) => {
      const path = join(target, renamed(file, name))
      renameSync(join(target, file), path)
      writeFileSync(path, renamed(readFileSync(path, 'utf8'), name))
      return path
    })
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const name = process.argv[2]
  try {
    const files = copyProvider(ROOT, name)
    // Lines have other lengths under another name.
    execFileSync(join(ROOT, 'node_modules/.bin/biome'), ['check', '--write', ...files], { stdio: 'ignore' })
    for (const path of files) process.stdout.write(`${path.slice(ROOT.length)}\n`)
    process.stdout.write(NEXT.replaceAll('NAME', name!))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
