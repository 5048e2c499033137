// tundish restore: loads a backup, and erases again all profiles that were erased since.
import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import type { Config } from '../../config.ts'
import { readLedgers } from '../../core/erasure/ledger-files.ts'
import { type RestoredMark, sentenceOf } from '../../core/tenants/restored.ts'
import { UsageError } from '../../lib/errors.ts'
import type { NamedAccount } from '../../operations/backup/accounts.ts'
import type { Ledger } from '../../operations/backup/erased.ts'
import { showProgress } from '../../operations/backup/progress.ts'
import { type Restored, restore } from '../../operations/backup/restore.ts'
import { LISTED_BEFORE_MS } from '../../payments/billing/movement/unlisted.ts'
import { abortedWhenStopped, withSettings } from './command.ts'
import { ask } from './confirm.ts'
import { commandLine } from './operations.ts'

interface Options {
  replace?: boolean
  erasures?: string[]
  withoutErasures?: boolean
  accounts?: string
}

export function register(program: Command): void {
  const command = program
    .command('restore <file>')
    .description('Load a backup (- for standard input) into an empty database; see docs/backup.md')
    .option('--replace', 'Delete all data in the database first')
    .option('--erasures <files...>', 'Ledgers of erasures, in addition to that of ERASURE_LEDGER')
    .addOption(
      new Option('--without-erasures', 'There is no ledger, because no profile was erased since the backup').conflicts(
        'erasures',
      ),
    )
    .option(
      '--accounts <names>',
      'The merchant accounts that were connected after the backup was made, as ORGANIZATION/PROVIDER/ACCOUNT with commas; none if there are none',
    )
  withSettings(command, async (config: Config, ...given: unknown[]) => {
    const [file, { replace = false, erasures = [], withoutErasures = false, accounts }] = given as [string, Options]
    const reasons: string[] = []
    const ledgers = await findLedgers(config, erasures, reasons)
    if (ledgers.length === 0 && erasures.length === 0 && !withoutErasures)
      reasons.push(
        `There is no ledger of erasures at ${config.erasureLedger}, so people who were erased since the backup would come back: name it with --erasures, or add --without-erasures if no profile was erased since.`,
      )
    // A restore that is refused anyway asks no question.
    const named = await readAccounts(accounts, file, reasons.length === 0)
    const progress = showProgress(process.stderr)
    const restored = await restore(config, {
      file,
      replace,
      ledgers,
      reasons,
      accounts: named,
      actor: commandLine(),
      signal: abortedWhenStopped(),
      progress,
    })
    return { json: report(restored), text: summary(restored) }
  })
}

/** The accounts of `--accounts`, or of a question at a terminal; undefined if there is neither. */
async function readAccounts(
  given: string | undefined,
  file: string,
  mayAsk: boolean,
): Promise<NamedAccount[] | undefined> {
  const isTerminal = process.stdin.isTTY === true && file !== '-'
  const text = given ?? (isTerminal && mayAsk ? await ask(QUESTION) : undefined)
  if (text === undefined) return undefined
  if (text.trim() === 'none') return []
  return text.split(',').map(readAccount)
}

const QUESTION =
  'Which merchant accounts were connected after the backup was made (ORGANIZATION/PROVIDER/ACCOUNT with commas, or none)? '

function readAccount(text: string): NamedAccount {
  const [organizationId, psp, ...rest] = text.trim().split('/')
  const merchantId = rest.join('/')
  if (organizationId && psp && merchantId) return { organizationId, psp, merchantId }
  throw new UsageError(
    `--accounts must be "none" or names such as acme/stripe/acct_1, with commas, got ${JSON.stringify(text)}.`,
  )
}

/** The named ledgers, and ERASURE_LEDGER if the file exists: new erasures are appended to it. Adds what is wrong to `reasons`. */
async function findLedgers({ erasureLedger }: Config, named: string[], reasons: string[]): Promise<Ledger[]> {
  const paths = new Set(named.map((path) => resolve(path)))
  for (const path of paths) {
    if (!(await isReadable(path))) reasons.push(`There is no readable ledger at ${path}.`)
  }
  if (await isReadable(erasureLedger)) paths.add(erasureLedger)
  return [...paths].map((path) => ({ path, read: (unreadable) => readLedgers([path], unreadable) }))
}

const isReadable = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

function report({ header, rows, erasures, inProgress, unlisted, mark }: Restored) {
  const { made_at, tundish, postgresql } = header
  const [tables, total] = count(rows)
  return {
    made_at,
    tundish,
    postgresql,
    tables,
    rows: total,
    erasures,
    in_progress: inProgress,
    unlisted_accounts: unlisted,
    // Null: there was no replaced database to compare with.
    differences: mark && !mark.compared ? null : (mark?.differences ?? []),
  }
}

function summary({ header, rows, erasures, inProgress, unlisted, mark }: Restored): string {
  const [tables, total] = count(rows)
  const { made_at } = header
  const lines = [
    `Restored ${tables} tables with ${total.toLocaleString('en')} rows as of ${made_at}.`,
    `Profiles erased again: ${erasures.erased}. Erased before: ${erasures.already_erased}. Not in this database: ${erasures.unknown}.`,
  ]
  if (inProgress > 0)
    lines.push(
      `${inProgress} charges or refunds were in progress: their outcome is looked up at the provider; nothing is charged again.`,
    )
  if (unlisted.length > 0)
    lines.push(
      `New charges are answered with 503 (restore_not_reconciled) until these merchant accounts are compared: ${unlisted.join(', ')}.`,
    )
  if (mark) lines.push(...changesOf(mark))
  lines.push(`For charges made after the backup, run: tundish reconcile --since ${reconcileSince(made_at)}`)
  return lines.join('\n')
}

function changesOf({ compared, differences }: RestoredMark): string[] {
  const found = compared
    ? ['Not as in the replaced database:', ...differences.map((one) => `- ${sentenceOf(one)}`)]
    : [
        'Keys that were revoked since the backup are valid again, and endpoints and settings are as they were: there was no replaced database to compare with.',
      ]
  return [
    ...found,
    'Revoke keys that must not be valid (tundish keys revoke, keys regenerate, operator revoke), check the rest, then run: tundish keys confirm',
  ]
}

const reconcileSince = (madeAt: string) => new Date(Date.parse(madeAt) - LISTED_BEFORE_MS).toISOString()

const count = (rows: Record<string, number>): [tables: number, rows: number] => [
  Object.keys(rows).length,
  Object.values(rows).reduce((sum, one) => sum + one, 0),
]
