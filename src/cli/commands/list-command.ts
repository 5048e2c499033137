// The command that lists all organizations, or all projects.
import type { Command } from 'commander'
import type { Db } from '../../lib/pg/db.ts'
import { action } from './command.ts'
import { NOTHING, table } from './text.ts'

/** Adds `list` to the group. `list` returns all, or those with the text in their id or name. */
export function addList(
  group: Command,
  {
    noun,
    columns,
    list,
  }: { noun: string; columns: string[]; list(db: Db, text: string | null): Promise<Record<string, unknown>[]> },
): void {
  action(
    group
      .command('list')
      .description(`List ${noun}s`)
      .option('--search <text>', 'Only those with this text in their id or name, case-insensitive'),
    async ({ db }, { search }: { search?: string }) => {
      const rows = await list(db, search ?? null)
      const none = search === undefined ? `There is no ${noun} yet.` : NOTHING
      return { json: rows, text: rows.length > 0 ? table(rows, columns) : none }
    },
  )
}
