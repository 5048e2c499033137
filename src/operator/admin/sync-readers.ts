// The readers that sync a project's records, and the lag of each.
import { jsonOf } from '../../lib/json/json.ts'
import { Type } from '../../lib/shape/schema.ts'
import { decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { reading } from './operation.ts'

const reader = shape('SyncReader', 'r', {
  project_id: text('The project.'),
  key_id: text('The secret key.'),
  key_name: text('Purpose of the key; null if it no longer exists.', { sql: 'k.name', nullable: true }),
  list: text('The list, or `export`.'),
  last_seen_at: instant('When the key last read a page, to within some seconds.'),
  window_to: instant('End of the window that the key read last.'),
  behind_seconds: decimal('How far the end of the window is behind the clock.', {
    sql: 'greatest(0, extract(epoch from db_clock() - r.window_to))',
  }),
  rows_of_day: integer('Number of rows that the key read on the day of `last_seen_at`.'),
})

const readers = reading({
  id: 'listSyncReaders',
  right: 'setup',
  command: 'project readers',
  path: '/projects/:project_id/sync-readers',
  tag: 'State',
  summary: 'List the readers of syncs and their lag',
  description:
    'Keys that read a list with an `updated_at` filter, or the export, in the last 30 days, those furthest behind first.',
  response: Type.Named('SyncReaders', {
    data: Type.Array(reader.schema, { description: 'An item for each key and list.' }),
  }),
  async run({ db }, { params }) {
    return jsonOf({ data: reader.list(await db.read(READERS, [params.project_id])) })
  },
})

const READERS = {
  name: 'list sync readers',
  text: `
  select ${reader.columns} from sync_readers r left join secret_keys k on k.id = r.key_id
  where r.project_id = $1 and r.last_seen_at > db_clock() - interval '30 days'
  order by r.window_to, r.list limit 1000`,
}

export const syncReaders = [readers] as const
