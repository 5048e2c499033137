// Erases persons again who were erased since the backup, before the restored rows are visible; then both ledgers agree.
import type { Config } from '../../config.ts'
import { reapplyIn } from '../../core/erasure/erasure.ts'
import type { Erasure } from '../../core/erasure/ledger.ts'
import { Refusal } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'
import type { Session } from './session.ts'

/** A file with erasures. */
export interface Ledger {
  path: string
  /** Reads it from the beginning; adds a sentence to `unreadable` for each line that cannot be read. */
  read(unreadable: string[]): AsyncIterable<Erasure>
}

const BATCH = 1000

/**
 * Collects the persons who must stay erased: those in the files, and those in the database that is being replaced. A line
 * that cannot be read is refused here, before anything is loaded, because it may be the erasure of a person.
 */
export async function gatherErased(query: Query, ledgers: Ledger[], config: Config): Promise<void> {
  await query(`
    create temporary table erased on commit drop as
    select project_id, profile_id, erased_at, false as in_our_file from erasures`)
  const unreadable: string[] = []
  for (const ledger of ledgers) {
    let batch: Erasure[] = []
    const flush = async () => {
      await query(ENTER, [JSON.stringify(batch), ledger.path === config.erasureLedger])
      batch = []
    }
    for await (const erasure of ledger.read(unreadable)) {
      batch.push(erasure)
      if (batch.length === BATCH) await flush()
    }
    await flush()
  }
  if (unreadable.length > 0) {
    const hint =
      'Remove such a line if a crash has cut it off, because that erasure was never confirmed; otherwise use a complete copy.'
    throw new Refusal([...unreadable, hint].join('\n'))
  }
}

/**
 * Erases the collected persons again, in the caller's transaction. An erasure that only one of the two ledgers has is added
 * to the other; those in our file are not written there again.
 */
export async function eraseAgain({ query }: Session, config: Config) {
  for (const statement of AGREE) await query(statement)
  return reapplyIn((work) => work(query), config.erasureLedger, gathered(query))
}

const ENTER = `
  insert into erased select project_id, profile_id, erased_at, $2 from json_populate_recordset(null::erased, $1)`

const IN_OUR_FILE =
  'exists (select from erased o where o.in_our_file and (o.project_id, o.profile_id) = (e.project_id, e.profile_id))'

const AGREE = [
  'create index on erased (project_id, profile_id)',
  // Erasures that the file lacks are added to both.
  `with taken as (delete from erasures e where not ${IN_OUR_FILE} returning *)
   insert into erased select project_id, profile_id, erased_at, false from taken`,
  // Erasures of the file are added to the database only.
  `insert into erasures (project_id, profile_id, erased_at)
   select project_id, profile_id, min(erased_at) from erased
   where in_our_file and project_id in (select id from projects) group by 1, 2
   on conflict (project_id, profile_id) do nothing`,
]

async function* gathered(query: Query): AsyncIterable<Erasure> {
  await query(`
    declare gathered cursor for
    select project_id, profile_id, min(erased_at) as erased_at from erased group by 1, 2 order by 1, 2`)
  for (;;) {
    const rows = await query<Record<keyof Erasure, string>>(`fetch ${BATCH} from gathered`)
    if (rows.length === 0) break
    for (const { project_id, profile_id, erased_at } of rows)
      yield { project_id, profile_id, erased_at: instantFromPg(erased_at) }
  }
  await query('close gathered')
}
