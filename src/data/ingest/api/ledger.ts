// What an import from another service with this API has read, by the ids: in the database, or in memory for a dry run.
import type { Query } from '../../../lib/pg/types.ts'
import type { ItemKind, Noted } from './convert.ts'
import type { ApiImportState } from './state.ts'

/** What was read, by the ids: so that nothing is counted twice, also after a kill. */
export interface Ledger {
  /** Those of these ids that were read, in this pass or, unless `inThisPass`, in an earlier one. Those of pass 0 are to be read again. */
  known(kind: ItemKind, ids: string[], inThisPass?: boolean): Promise<Set<string>>
  /** Keeps what was read; returns the ids that had been read in this pass already. */
  note(noted: Noted[]): Promise<Set<string>>
  /** Ids in their order behind `after`. */
  list(kind: ItemKind, after: string, limit: number): Promise<string[]>
}

export function ledgerOf(query: Query, state: ApiImportState): Ledger {
  const scope = [state.projectId, state.source]
  return {
    async known(kind, ids, inThisPass = false) {
      const rows = await query(
        `select id from api_import_ids where project_id = $1 and source = $2 and kind = $3 and id = any($4)
           and pass > 0 and (not $5 or pass = $6)`,
        [...scope, kind, ids, inThisPass, state.pass],
      )
      return new Set(rows.map(({ id }) => id!))
    },
    async note(noted) {
      const columns = [noted.map(({ kind }) => kind), noted.map(({ id }) => id)] as const
      // The limit has each id looked up by itself: without statistics a join reads all ids of the import for each of them.
      const before = await query(
        `select given.kind, given.id from unnest($3::text[], $4::text[]) given (kind, id)
         cross join lateral (select from api_import_ids i
           where i.project_id = $1 and i.source = $2 and i.kind = given.kind and i.id = given.id and i.pass = $5 limit 1) known`,
        [...scope, ...columns, state.pass],
      )
      await query(
        `with held as materialized (select hold_organization($9))
         insert into api_import_ids (project_id, source, kind, id, pass, label, amount)
         select $1, $2, given.*
         from unnest($3::text[], $4::text[], array_fill($5::int, array[$6::int]), $7::text[], $8::numeric[]) given, held
         on conflict (project_id, source, kind, id) do update set
           pass = excluded.pass, label = excluded.label, amount = excluded.amount`,
        [
          ...scope,
          ...columns,
          state.pass,
          noted.length,
          noted.map(({ label }) => label),
          noted.map(({ amount }) => amount),
          state.organizationId,
        ],
      )
      return new Set(before.map(({ kind, id }) => `${kind} ${id}`))
    },
    async list(kind, after, limit) {
      const rows = await query(
        `select id from api_import_ids where project_id = $1 and source = $2 and kind = $3 and id > $4 order by id limit $5`,
        [...scope, kind, after, limit],
      )
      return rows.map(({ id }) => id!)
    },
  }
}

/** The same in memory, for a dry run. */
export function ledgerInMemory(): Ledger {
  const ids = new Map<string, Set<string>>()
  const of = (kind: string) => ids.get(kind) ?? ids.set(kind, new Set()).get(kind)!
  return {
    known: async (kind, asked) => new Set(asked.filter((id) => of(kind).has(id))),
    async note(noted) {
      const before = noted.filter(({ kind, id }) => of(kind).has(id)).map(({ kind, id }) => `${kind} ${id}`)
      for (const { kind, id } of noted) of(kind).add(id)
      return new Set(before)
    },
    list: async (kind, after, limit) =>
      [...of(kind)]
        .sort()
        .filter((id) => id > after)
        .slice(0, limit),
  }
}
