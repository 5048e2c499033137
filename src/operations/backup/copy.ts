// Loads a backup as it is into the empty database of another server: the same database goes on there.
import type { Config } from '../../config.ts'
import type { Header } from './format.ts'
import { load } from './load.ts'
import type { Progress } from './progress.ts'
import { dropIndexes, emptyTables, lockAndFindData, runMissing, schemaOf } from './schema.ts'
import { withSession } from './session.ts'
import { openSource } from './source.ts'
import { qualified } from './sql-names.ts'

interface Options {
  file: string
  signal: AbortSignal
  progress: Progress
}

/**
 * All or nothing. Unlike a restore it assumes that nothing was written since the backup: no charge can be missing, so none
 * is refused until the provider was compared, and no person can have been erased since.
 */
export async function loadCopy(
  config: Config,
  { file, signal, progress }: Options,
): Promise<{ header: Header; rows: Record<string, number> }> {
  const source = await openSource(file, { signal, progress })
  try {
    const state = await schemaOf(source.header)
    const options = { config, name: 'tundish upgrade', signal, create: true } as const
    const rows = await withSession(options, async (session) => {
      const { query } = session
      await query('begin')
      const { present } = await lockAndFindData(query)
      const target = await emptyTables(session, present, state)
      const createIndexes = await dropIndexes(query)
      const loaded = await load(session, source, target, progress)
      progress.at('Building indexes')
      await createIndexes()
      await runMissing(session, state)
      for (const { name } of target.tables) await query(`analyze ${qualified(target.schema, name)}`)
      await query('commit')
      return loaded
    })
    return { header: source.header, rows }
  } finally {
    progress.end()
    await source.script.close().catch(() => {})
  }
}
