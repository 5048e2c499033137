// The readers that sync a project's records, and the lag of each.
import { Type } from '../../lib/shape/schema.ts'
import { instantFromPg } from '../../lib/time.ts'
import { reading } from './operation.ts'

const readers = reading({
  id: 'listSyncReaders',
  right: 'setup',
  command: 'project readers',
  path: '/projects/:project_id/sync-readers',
  tag: 'State',
  summary: 'List the readers of syncs and their lag',
  description: 'Keys that read a list with an `updated_at` filter in the last 30 days, those furthest behind first.',
  response: Type.Named('SyncReaders', {
    data: Type.Array(
      Type.Named('SyncReader', {
        project_id: Type.String({ description: 'The project.' }),
        key_id: Type.String({ description: 'The secret key.' }),
        key_name: Type.Union([Type.String(), Type.Null()], {
          description: 'Purpose of the key; null if it no longer exists.',
        }),
        list: Type.String({ description: 'The list.' }),
        last_seen_at: Type.String({
          format: 'date-time',
          description: 'When the key last read a page, to within some seconds.',
        }),
        window_to: Type.String({ format: 'date-time', description: 'End of the window that the key read last.' }),
        behind_seconds: Type.Number({ description: 'How far the end of the window is behind the clock.' }),
        rows_of_day: Type.Integer({
          description: 'Number of rows that the key read on the day of `last_seen_at`.',
        }),
      }),
      { description: 'An item for each key and list.' },
    ),
  }),
  async run({ db }, { params }) {
    const rows = await db.query(READERS, [params.project_id!])
    return {
      data: rows.map(({ last_seen_at, window_to, behind_seconds, rows_of_day, ...row }) => ({
        ...row,
        last_seen_at: instantFromPg(last_seen_at!),
        window_to: instantFromPg(window_to!),
        behind_seconds: Number(behind_seconds),
        rows_of_day: Number(rows_of_day),
      })),
    }
  },
})

const READERS = `
  select r.project_id, r.key_id, k.name as key_name, r.list, r.last_seen_at, r.window_to, r.rows_of_day,
    greatest(0, extract(epoch from db_clock() - r.window_to)) as behind_seconds
  from sync_readers r left join secret_keys k on k.id = r.key_id
  where r.project_id = $1 and r.last_seen_at > db_clock() - interval '30 days'
  order by r.window_to, r.list limit 1000`

export const syncReaders = [readers] as const
