// Lists of charges and refunds that have been in progress for too long.
import { isUuid } from '../../lib/ids.ts'
import { Type } from '../../lib/shape/schema.ts'
import { type ListDeclaration, list } from './list.ts'

interface StuckDeclaration<I extends string, T>
  extends Pick<
    ListDeclaration<I, T>,
    'id' | 'right' | 'command' | 'columns' | 'path' | 'summary' | 'shape' | 'from' | 'key' | 'reach'
  > {
  /** The alias in `from` of the table with the rows in progress. */
  table: string
}

/** Declares the list of rows whose outcome has been unknown for too long. */
export function listStuck<const I extends string, T>({ table, ...about }: StuckDeclaration<I, T>) {
  return list({
    ...about,
    tag: 'Orders',
    description: 'Across all organizations: those whose outcome has been unknown for longer than `minutes`.',
    at: `${table}.created_at`,
    isKey: isUuid,
    where: `${table}.status = 'processing'`,
    filters: {
      minutes: {
        schema: Type.Integer({
          description: 'How long is too long, in minutes.',
          minimum: 0,
          maximum: 100_000,
          default: 10,
        }),
        where: (value) => `${table}.created_at < db_clock() - make_interval(mins => ${value}::int)`,
      },
    },
  })
}
