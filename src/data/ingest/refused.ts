// Lines that pass every check and are refused by the database: finds them, and rejects them like other bad lines.
import pg from 'pg'
import type { Kind, Scope } from '../../core/records/record.ts'
import { Refusal } from '../../lib/errors.ts'
import { REFUSED_CLASSES } from '../../lib/pg/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { insert } from './merge.ts'
import { countRejected } from './rejected.ts'
import { REJECTED, type StagedKind, staged } from './staging.ts'

/**
 * Moves the staged rows that the database refuses to the rejected lines. Throws a `Refusal` if there are none, because then it
 * refused what follows from several lines.
 */
export async function rejectRefused(
  query: Query,
  kinds: readonly StagedKind[],
  scope: Omit<Scope, 'stamp'>,
  sources: readonly string[],
  error: pg.DatabaseError,
): Promise<void> {
  const before = await countRejected(query)
  for (const { kind } of kinds)
    for (const statement of tryEach(kind, { ...scope, stamp: 'db_clock()' })) await query(statement)
  if ((await countRejected(query)) > before) return
  const { code, table = 'unknown' } = error
  throw new Refusal(
    `${sources.join(', ')}: the database refused the records at the table ${table} (${code}), and none of the lines alone: nothing was written.`,
  )
}

// A table like the kind's, with all of its indexes, takes each row alone; the exception at the end takes it out again. Foreign keys
// are not copied: references were checked. Messages of the classes 22 and 23 quote values.
// A line with only the fields that change has nulls (23502) until it is completed.
function tryEach(kind: Kind, scope: Scope): string[] {
  const table = staged(kind)
  return [
    `create temp table import_probe (like ${kind.table} including all)`,
    `do $probe$
    declare place tid; said text; broken text;
    begin
      for place in select ctid from ${table} loop
        begin
          ${insert(kind, scope, 'import_probe')} where ctid = place;
          raise sqlstate 'PROBE';
        exception when others then
          if sqlstate not in ('PROBE', '23502') then
            if left(sqlstate, 2) not in (${REFUSED_CLASSES.map(pg.escapeLiteral).join(', ')}) then raise; end if;
            get stacked diagnostics broken = constraint_name;
            said := case when sqlstate like '54%' then ': ' || sqlerrm when broken <> '' then ': ' || broken else '' end;
            with gone as (delete from ${table} s where s.ctid = place returning s.source, s.line, s.original)
            insert into ${REJECTED} (source, line, part, code, reason, bytes)
            select source, line, 0, 'refused_by_database', ${pg.escapeLiteral(`${kind.name} is refused by the database at the table ${kind.table} (`)}
              || sqlstate || said || ')', convert_to(original, 'UTF8') from gone;
          end if;
        end;
      end loop;
    end $probe$`,
    'drop table import_probe',
  ]
}
