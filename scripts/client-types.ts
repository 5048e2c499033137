// Writes the types of @tundish/client from the OpenAPI description; with --check it fails when they are out of date.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { unconnectedListener } from './openapi.ts'

const CLIENT = fileURLToPath(new URL('../clients/js/', import.meta.url))
const FILE = join(CLIENT, 'src/schema.ts')
const HEAD = '// Types of the API, generated from its OpenAPI description by scripts/client-types.ts.\n'

const listener = await unconnectedListener()
const generated = generate(JSON.stringify(listener.swagger()))
await listener.close()
if (!process.argv.includes('--check')) writeFileSync(FILE, generated)
else if (readFileSync(FILE, 'utf8') !== generated) {
  process.stderr.write('clients/js/src/schema.ts is out of date. Run: bin/pinned-node --dev scripts/client-types.ts\n')
  process.exitCode = 1
}

function generate(document: string): string {
  const { resolve } = createRequire(join(CLIENT, 'package.json'))
  const cli = join(dirname(resolve('openapi-typescript/package.json')), 'bin/cli.js')
  const folder = mkdtempSync(join(tmpdir(), 'tundish-client-types-'))
  try {
    writeFileSync(join(folder, 'openapi.json'), document)
    const args = [cli, 'openapi.json', '-o', 'schema.ts']
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    if (status !== 0) throw new Error(`openapi-typescript failed: ${stderr}`)
    return HEAD + readFileSync(join(folder, 'schema.ts'), 'utf8')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
