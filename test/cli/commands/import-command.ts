// What tests of imports by the command line need: a database with imports, a data folder, and the environment of the command.
import { randomBytes } from 'node:crypto'
import { PROGRAM_ENV } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { openImports } from '../../support/imports.ts'

export async function openImportCommand(more: Record<string, string> = {}) {
  const imports = await openImports()
  const folder = temporaryFolder()
  const env: Record<string, string> = {
    ...PROGRAM_ENV,
    DATABASE_URL: imports.url,
    DATA_DIR: folder,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ...more,
  }
  return { imports, folder, env, stop: imports.stop }
}
