// What tests of imports by the command line need: a database with imports, a data folder, and the environment of the command.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROGRAM_ENV } from '../../support/cli.ts'
import { openImports } from '../../support/imports.ts'

export async function openImportCommand(name: string, more: Record<string, string> = {}) {
  const imports = await openImports()
  const folder = mkdtempSync(join(tmpdir(), `tundish-test-${name}-`))
  const env: Record<string, string> = {
    ...PROGRAM_ENV,
    DATABASE_URL: imports.url,
    DATA_DIR: folder,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ...more,
  }
  async function stop(): Promise<void> {
    await imports.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { imports, folder, env, stop }
}
