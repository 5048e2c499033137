// The keys that write records of a project: when, how many of each kind, and what was rejected.
import { REJECT_CODES } from '../../core/records/import/fields.ts'
import { Type } from '../../lib/shape/schema.ts'
import { instantFromPg } from '../../lib/time.ts'
import { reading } from './operation.ts'

const writers = reading({
  id: 'listRecordWriters',
  command: 'project writers',
  right: 'setup',
  path: '/projects/:project_id/record-writers',
  tag: 'State',
  summary: 'List the keys that write records',
  description:
    'Keys that sent records to `POST /records` in the last 30 days, by day and kind of record, the last day first.',
  response: Type.Named('RecordWriters', {
    data: Type.Array(
      Type.Named('RecordWriter', {
        key_id: Type.String({ description: 'The secret key.' }),
        key_name: Type.OrNull(Type.String(), 'Purpose of the key; null if it no longer exists.'),
        day: Type.String({ format: 'date', description: 'The day, of UTC.' }),
        record: Type.String({ description: 'The kind of the records; empty for records of no kind.' }),
        accepted: Type.Integer({ description: 'Number of records that were not rejected.' }),
        rejected: Type.Integer({ description: 'Number of bad records.' }),
        reasons: Type.Array(
          Type.Named('RejectReason', {
            code: Type.String({ description: 'Why, for programs.' }),
            reason: Type.String({ description: 'Why, for people.' }),
            records: Type.Integer({ description: 'Number of records that were rejected for it.' }),
          }),
          { description: 'Why records were rejected.' },
        ),
        last_seen_at: Type.String({
          format: 'date-time',
          description: 'When the key last sent such records that day, to within some seconds.',
        }),
      }),
      { description: 'An item for each key, day and kind.' },
    ),
  }),
  async run({ db }, { params }) {
    const rows = await db.query(WRITERS, [params.project_id])
    return {
      data: rows.map(({ accepted, rejected, reasons, last_seen_at, ...row }) => ({
        ...row,
        accepted: Number(accepted),
        rejected: Number(rejected),
        reasons: (JSON.parse(reasons!) as { code: string; records: number }[]).map(({ code, records }) => ({
          code,
          reason: (REJECT_CODES as Record<string, string>)[code] ?? code,
          records,
        })),
        last_seen_at: instantFromPg(last_seen_at!),
      })),
    }
  },
})

const WRITERS = `
  select w.key_id, k.name as key_name, w.day, w.record, max(w.last_seen_at) as last_seen_at,
    coalesce(sum(w.n) filter (where w.code = ''), 0) as accepted,
    coalesce(sum(w.n) filter (where w.code <> ''), 0) as rejected,
    coalesce(json_agg(json_build_object('code', w.code, 'records', w.n) order by w.code) filter (where w.code <> ''), '[]')
      as reasons
  from record_writers w left join secret_keys k on k.id = w.key_id
  where w.project_id = $1 and w.day > (db_clock() at time zone 'UTC')::date - 30
  group by w.key_id, k.name, w.day, w.record order by w.day desc, w.key_id, w.record limit 1000`

export const recordWriters = [writers] as const
