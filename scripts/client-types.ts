// Writes the types of @tundish/client from the OpenAPI description, to the given file or where the client's sources import it.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { unconnectedListener } from './openapi.ts'

const CLIENT = fileURLToPath(new URL('../clients/js/', import.meta.url))
const HEAD = '// Types of the API, generated from its OpenAPI description by scripts/client-types.ts.\n'

const listener = await unconnectedListener()
const generated = generate(JSON.stringify(listener.swagger()))
await listener.close()
write(process.argv[2] ?? join(CLIENT, 'src/schema.ts'), generated)

/** In one step, because several programs may pack the client at once. */
function write(file: string, text: string): void {
  const written = `${file}.${process.pid}`
  writeFileSync(written, text)
  renameSync(written, file)
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
