// Checks the OpenAPI document with Redocly's recommended rules, without a server and without a request to anybody.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { unconnectedListener } from './openapi.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const REDOCLY = join(ROOT, 'node_modules/@redocly/cli/bin/cli.js')

const folder = mkdtempSync(join(tmpdir(), 'tundish-openapi-'))
try {
  const file = join(folder, 'openapi.json')
  const listener = await unconnectedListener()
  writeFileSync(file, JSON.stringify(listener.swagger(), null, 2))
  const { status, stdout, stderr } = spawnSync(process.execPath, [REDOCLY, 'lint', '--config', 'redocly.yaml', file], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  })
  process.stdout.write(`${stdout}${stderr}\n`)
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
