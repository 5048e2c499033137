// tundish erasures: prints the ledger of erased profiles, and erases them again after a restored backup.
import { createReadStream } from 'node:fs'
import { access } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { audited } from '../audit/audit.ts'
import { type Erasure, listErasures, reapply } from '../erasure/erasure.ts'
import { Refusal } from '../lib/errors.ts'
import { isJsonObject, JsonError, readJson } from '../lib/json/read.ts'
import { readInstant, TimeError } from '../lib/time.ts'
import { action } from './command.ts'
import { commandLine } from './operations.ts'

export function register(program: Command): void {
  const erasures = program.command('erasures').description('the ledger of erased profiles')
  action(
    erasures.command('export').description('print the ledger of the database, one line an erasure'),
    async ({ db }) => {
      const list = await listErasures(db)
      return { json: list, text: list.map((erasure) => JSON.stringify(erasure)).join('\n') }
    },
  )
  action(
    erasures
      .command('reapply [files...]')
      .description(
        'erase again whoever stands in these ledgers (by default the one of ERASURE_LEDGER), after restoring a backup',
      ),
    async (app, files: string[]) => {
      const { db, config } = app
      const paths = files.length > 0 ? files : [config.erasureLedger]
      await Promise.all(paths.map(checkReadable))
      const unreadable: string[] = []
      const result = await reapply(db, config.erasureLedger, readLedgers(paths, unreadable))
      const entry = { action: 'erasures.reapplied', target: 'ledger', after: result }
      await audited(app, commandLine(), async () => ({ entry, result: undefined }))
      const summary = `${result.erased} profiles erased, ${result.already_erased} were erased already, ${result.unknown} are not in this database.`
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

/** Goes on behind a line that cannot be read, which a crash may have cut off: everybody else must be erased. */
export async function* readLedgers(paths: string[], unreadable: string[]): AsyncIterable<Erasure> {
  for (const path of paths) {
    let line = 0
    for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      line += 1
      if (text === '') continue
      try {
        yield readErasure(text)
      } catch (error) {
        if (!(error instanceof JsonError || error instanceof TimeError)) throw error
        unreadable.push(`${path}:${line}: ${error.message}.`)
      }
    }
  }
}

function readErasure(text: string): Erasure {
  const value = readJson(text)
  if (!isJsonObject(value)) throw new JsonError('an object is required')
  const { project_id, profile_id, erased_at } = value
  if (typeof project_id !== 'string' || typeof profile_id !== 'string' || typeof erased_at !== 'string') {
    throw new JsonError('project_id, profile_id and erased_at are required')
  }
  return { project_id, profile_id, erased_at: readInstant(erased_at) }
}
