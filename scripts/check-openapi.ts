// Checks the OpenAPI documents of both listeners with Redocly's recommended rules, without a server and without network access.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SIDES, unconnectedListener } from './openapi.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const REDOCLY = join(ROOT, 'node_modules/@redocly/cli/bin/cli.js')

const folder = mkdtempSync(join(tmpdir(), 'tundish-openapi-'))
try {
  const files: string[] = []
  for (const side of Object.keys(SIDES) as (keyof typeof SIDES)[]) {
    const listener = await unconnectedListener(side)
    const file = join(folder, `${side}.json`)
    writeFileSync(file, JSON.stringify(listener.swagger(), null, 2))
    files.push(file)
  }
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [REDOCLY, 'lint', '--config', 'redocly.yaml', ...files],
    {
      cwd: ROOT,
      encoding: 'utf8',
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  )
  process.stdout.write(`${stdout}${stderr}\n`)
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
