// The declaration of a list: its rows, filters and limits, and the schemas of its query and its pages.
import type { Param } from '../../lib/pg/types.ts'
import { type ObjectSchema, type Schema, Type } from '../../lib/shape/schema.ts'
import type { Shape } from '../../lib/shape/shape.ts'

/** A filter of a list: the parameter's schema, and the condition it becomes. */
export interface Filter {
  schema: Schema
  /** The condition, for the placeholder of its value. An empty condition restricts nothing. */
  where: (placeholder: string) => string
  /** Converts the value for the database. */
  param?: (value: never) => Param
  /** Whether every value has only a few rows, so that these can be sorted and filtered without an index. */
  selective?: boolean
  /** The field of `counts` with the number of rows for each value; used when this is the only filter. */
  counter?: string
}

/** A filter for the rows with this value in a column. */
export const equals = <const More extends Pick<Filter, 'selective' | 'counter'>>(
  column: string,
  description: string,
  more?: More,
) => ({ schema: Type.String({ description }), where: (value: string) => `${column} = ${value}`, ...(more as More) })

export interface List {
  /** The name in cursors and of its statements. */
  name: string
  /** The list in `counts` whose counters are its own; by default its name. */
  countedAs?: string
  /** The counters that the record declares; without them the list would have no totals. */
  counts: { readonly [field: string]: unknown }
  shape: Shape
  /** Table and alias of the rows themselves. */
  table: string
  alias: string
  /** Further joins for the shape's columns, none of which may change the number of rows. */
  joins: string
  maxLimit: number
  /** By the name inside `filter[…]`. Every list also has `updated_at.from` and `updated_at.to`, for a sync. */
  filters: Record<string, Filter>
  /** A condition that applies by default, depending on the given filters; and the field of `counts` that counts its rows. */
  defaultFilter?: (given: Record<string, unknown>) => { where?: string; counter: string } | undefined
}

/** A record with counters: '' counts all rows, the fields `C` count the rows of each of their values. */
interface Counted<C extends string> {
  table: string
  counts: { readonly [field in C | '']: unknown }
}

type Declared<C extends string> = Omit<List, 'name' | 'table' | 'counts' | 'joins' | 'filters' | 'defaultFilter'> & {
  /** None by default. */
  joins?: string
  filters: Record<string, Filter & { counter?: C }>
  defaultFilter?: (given: Record<string, unknown>) => { where?: string; counter: C } | undefined
}

/** Declares the list of a record. It compiles only if the record has a counter for all rows and for each counted filter. */
export function listOf<C extends string>({ table, counts }: Counted<C>, declared: Declared<NoInfer<C> | ''>): List {
  return { name: table, table, counts, joins: '', ...declared }
}

const DEFAULT_LIMIT = 20

/** The query parameters of a list, for reading and for describing them. */
export function listQuery({ filters, maxLimit }: Pick<List, 'filters' | 'maxLimit'>): ObjectSchema {
  const date = (rule: string) =>
    Type.String({
      format: 'date-time',
      description: `Only items with \`updated_at\` ${rule}, ordered by \`updated_at\`.`,
    })
  const parameters: Record<string, Schema> = {
    limit: Type.Integer({
      minimum: 1,
      maximum: maxLimit,
      default: DEFAULT_LIMIT,
      description: 'Maximum number of items on a page.',
    }),
    cursor: Type.String({
      description:
        '`pagination.next_cursor` of the previous page, unchanged. Without an `updated_at` filter, the id of an item is accepted, too.',
    }),
  }
  for (const [name, { schema }] of Object.entries(filters)) parameters[`filter[${name}]`] = schema
  parameters['filter[updated_at.from]'] = date('at or after this instant')
  parameters['filter[updated_at.to]'] = date('before this instant')
  return Type.Object(
    Object.fromEntries(Object.entries(parameters).map(([name, schema]) => [name, Type.Optional(schema)])),
  )
}

/** The schema of a page: the items and the pagination. */
export function pageSchema(list: Pick<List, 'shape'>): Schema {
  return Type.Named(`${list.shape.name}List`, {
    data: Type.Array(list.shape.schema, { description: 'The items of this page.' }),
    pagination: Type.Named('Pagination', {
      has_more: Type.Boolean({ description: 'Whether there are more items.' }),
      total: Type.Integer({
        description: 'Number of matching items, counted for the first page and repeated on the others.',
        minimum: 0,
      }),
      next_cursor: Type.Optional(
        Type.String({
          description: 'Pass it unchanged as `cursor` for the next page. Absent on the last page.',
          maxLength: 256,
        }),
      ),
      cursor: Type.Optional(Type.String({ description: 'The same as `next_cursor`.', maxLength: 256 })),
    }),
  })
}
