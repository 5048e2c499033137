// tundish erasures: prints the ledger of erased profiles, and erases them again after a restored backup.
import { access } from 'node:fs/promises'
import type { Command } from 'commander'
import { addEntry } from '../../core/audit/audit.ts'
import { reapply } from '../../core/erasure/erasure.ts'
import { listErasures } from '../../core/erasure/ledger.ts'
import { readLedgers } from '../../core/erasure/ledger-files.ts'
import { Refusal } from '../../lib/errors.ts'
import { action } from './command.ts'
import { commandLine } from './operations.ts'

export function register(program: Command): void {
  const erasures = program.command('erasures').description('Export the ledger of erasures, or repeat its erasures')
  action(
    erasures.command('export').description('Print the ledger of the database, one line for each erasure'),
    async ({ db }) => {
      const list = await listErasures(db)
      return { json: list, text: list.map((erasure) => JSON.stringify(erasure)).join('\n') }
    },
  )
  action(
    erasures
      .command('reapply [files...]')
      .description(
        'Erase the profiles of these ledgers again (by default of ERASURE_LEDGER), after restoring a backup',
      ),
    async (app, files: string[]) => {
      const { db, config } = app
      const paths = files.length > 0 ? files : [config.erasureLedger]
      await Promise.all(paths.map(checkReadable))
      const unreadable: string[] = []
      const result = await reapply(db, config.erasureLedger, readLedgers(paths, unreadable))
      await addEntry(app, commandLine(), { action: 'erasures.reapplied', target: 'ledger', after: result })
      const summary = `Profiles erased: ${result.erased}. Erased before: ${result.already_erased}. Not in this database: ${result.unknown}.`
      return {
        json: { ...result, unreadable },
        text: [...unreadable, summary].join('\n'),
        exitCode: unreadable.length > 0 ? 1 : 0,
      }
    },
  )
}

async function checkReadable(path: string): Promise<void> {
  await access(path).catch(() => {
    throw new Refusal(`There is no readable ledger at ${path}.`)
  })
}
