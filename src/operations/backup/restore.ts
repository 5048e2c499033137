// Restores a backup in one transaction, so that a part of it, or an erased person, is never visible.

import type { Config } from '../../config.ts'
import type { Actor } from '../../core/audit/audit.ts'
import type { RestoredMark } from '../../core/tenants/restored.ts'
import { Refusal } from '../../lib/errors.ts'
import { isClash } from '../../lib/pg/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { keepAccounts, markUnlisted, type NamedAccount, refuseIfConnected } from './accounts.ts'
import { removeArriving } from './arriving.ts'
import { enterInAudit } from './audited.ts'
import type { Catalogue } from './catalogue.ts'
import { keepClocks, raiseClocks } from './clocks.ts'
import { eraseAgain, gatherErased, type Ledger } from './erased.ts'
import type { Header } from './format.ts'
import { load } from './load.ts'
import type { Progress } from './progress.ts'
import { asRefusal, checkMasterKey, reasonsOfDatabase, refuseEarly, refuseFor } from './reasons.ts'
import { dropIndexes, emptyTables, findData, lockAndFindData, runMissing, schemaOf } from './schema.ts'
import { InDoubt, type Session, withSession } from './session.ts'
import { compareSettings, endSignIns, keepSettings } from './settings.ts'
import { openSource, readHeader, type Source } from './source.ts'
import { qualified } from './sql-names.ts'

export interface RestoreOptions {
  /** `-` is standard input. */
  file: string
  /** Whether the rows of the database may be replaced. */
  replace: boolean
  ledgers: Ledger[]
  /** Why the restore must be refused, as far as the caller knows: all reasons are reported together. */
  reasons: string[]
  /** The merchant accounts that were connected after the backup was made; undefined if the operator did not say. */
  accounts: NamedAccount[] | undefined
  /** The actor in the audit log. */
  actor: Actor
  signal: AbortSignal
  progress: Progress
}

export interface Restored {
  header: Header
  rows: Record<string, number>
  erasures: { erased: number; already_erased: number; unknown: number }
  /** Charges and refunds with an unknown outcome, for which the provider is asked. */
  inProgress: number
  /** The names of the merchant accounts that have to be compared before new keys are charged. */
  unlisted: string[]
  /** Keys, endpoints and settings that are not as they were; undefined if there is nothing to check. */
  mark: RestoredMark | undefined
}

/** Loads a backup into the database of these settings, which is created if it does not exist. All or nothing. */
export async function restore(config: Config, options: RestoreOptions): Promise<Restored> {
  const { file, signal, progress } = options
  let source: Source | undefined
  try {
    if (file === '-') source = await openSource(file, { signal, progress })
    const known = source?.header
    await refuseEarly(config, options, {
      readHeader: async () => known ?? readHeader(file, { signal, progress }),
      async verify() {
        if (!known) await (await openSource(file, { signal, progress })).script.close()
      },
    })
    source ??= await openSource(file, { signal, progress })
    const { header } = source
    const seal = checkMasterKey(config, header)
    await schemaOf(header)
    return await withSession({ config, name: 'tundish restore', signal, create: true }, (session) =>
      inOneTransaction(session, config, seal, source!, options),
    )
  } catch (error) {
    throw asRefusal(file, error)
  } finally {
    progress.end()
    await source?.script.close().catch(() => {})
  }
}

async function inOneTransaction(
  session: Session,
  config: Config,
  seal: Seal | undefined,
  source: Source,
  { replace, ledgers, accounts, actor, progress, file }: RestoreOptions,
): Promise<Restored> {
  const { query } = session
  // Before the locks, too: a server that works with the tables would wait for them, and they for it.
  refuseFor(await reasonsOfDatabase(query, config, replace, await findData(query)))
  const { present, filled } = await beginAlone(query)
  refuseFor(await reasonsOfDatabase(query, config, replace, filled))
  await keepClocks(query)
  await gatherErased(query, ledgers, config)
  await keepAccounts(query)
  await keepSettings(query)
  await keepSimulators(query)

  const state = await schemaOf(source.header)
  const target = await emptyTables(session, present, state)
  const createIndexes = await dropIndexes(query)
  const rows = await load(session, source, target, progress)
  if (accounts === undefined) await refuseIfConnected(query)
  await removeArriving(query, target)
  progress.at('Building indexes')
  await createIndexes()
  await runMissing(session, state)

  await raiseClocks(query)
  const unlisted = await markUnlisted(query, source.header, accounts)
  await returnToSimulators(query)
  await endSignIns(query)
  const mark = await compareSettings(query, source.header)
  progress.at('Erasing again')
  const erasures = await eraseAgain(session, config)
  progress.at('Finishing')
  const { header } = source
  // Without a master key nothing was ever audited.
  const confirm = seal ? await enterInAudit(query, config, seal, { actor, file, header, mark }) : async () => {}
  const inProgress = await countInProgress(query)
  await analyze(query, target)
  await commit(query)
  await confirm()
  return { header, rows, erasures, inProgress, unlisted, mark }
}

const LOCK_ATTEMPTS = 5

/** Begins the transaction with every table locked; again, if these locks and those of a server wait for each other. */
async function beginAlone(query: Query): ReturnType<typeof lockAndFindData> {
  for (let attempt = 1; ; attempt += 1) {
    await query('begin')
    try {
      return await lockAndFindData(query)
    } catch (error) {
      if (!isClash(error)) throw error
      await query('rollback')
      if (attempt === LOCK_ATTEMPTS)
        throw new Refusal('Tundish is running on this database and works with its tables: stop every process of it.')
    }
  }
}

// The simulators of this machine are not those of the backup, which may still run: a trial would charge at them.
const IS_SIMULATOR = `name like '%simulator url'`

async function keepSimulators(query: Query): Promise<void> {
  await query(`create temporary table former_simulators on commit drop as
    select name, value from instance where ${IS_SIMULATOR}`)
}

async function returnToSimulators(query: Query): Promise<void> {
  await query(`delete from instance where ${IS_SIMULATOR}`)
  await query('insert into instance (name, value) select name, value from former_simulators')
}

async function countInProgress(query: Query): Promise<number> {
  const [row] = await query(`
    select (select count(*) from orders where status = 'processing') +
      (select count(*) from refunds where status = 'processing') as n`)
  return Number(row!.n)
}

/** Without statistics the plans of the first hours would be bad. */
async function analyze(query: Query, { schema, tables }: Catalogue): Promise<void> {
  for (const { name } of tables) {
    const table = qualified(schema, name)
    const [row] = await query('select to_regclass($1) is not null as is_there', [table])
    if (row!.is_there === 't') await query(`analyze ${table}`)
  }
}

async function commit(query: Query): Promise<void> {
  await query('commit').catch((error: Error) => {
    throw new InDoubt(
      `The connection broke while the restore was committed (${error.message}): run "tundish doctor" to see whether the data is there.`,
    )
  })
}
