// When a project's messages are sent: the hour of its morning digest, and its quiet hours.
import { ApiError, invalidValue } from '../../lib/errors.ts'
import type { NamedRow, Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { integer, shape, text } from '../../lib/shape/shape.ts'
import { change, reading } from './operation.ts'

export const ALERTS_TAG = 'Alerts'
const PATH = '/projects/:project_id/alert-settings'

/** Throws a 400 for an id that a new rule or destination cannot have. */
export function checkAlertId(name: string, id: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id))
    throw invalidValue(`${name} must be 1 to 64 letters, digits, _ and -, and begin with a letter or digit.`)
}

/** Throws a 409 if a project has `most` rows in the table already; `what` names them. */
export async function refuseTooMany(query: Query, projectId: string, table: string, most: number, what: string) {
  const [count] = await query(`select count(*) as n from ${table} where project_id = $1`, [projectId])
  if (Number(count!.n) >= most) throw new ApiError(409, 'operation_refused', `A project has at most ${most} ${what}.`)
}

/** The row by which a project is checked. */
export async function ensureAlertSettings(query: Query, projectId: string): Promise<void> {
  await query(
    `insert into alert_settings as s (project_id, next_check_at) values ($1, db_clock())
     on conflict (project_id) do update set next_check_at = excluded.next_check_at`,
    [projectId],
  )
}

const settings = shape('AlertSettings', 's', {
  digest_hour: integer('The hour of the morning digest, in the time zone of the project; null: none is sent.', {
    nullable: true,
    example: 7,
  }),
  quiet_from: integer('Messages that fall between these hours are sent at their end; null: there are none.', {
    nullable: true,
    example: 22,
  }),
  quiet_to: integer('Their end.', { nullable: true, example: 7 }),
  digest_day: text('The last day that a digest was made of.', {
    nullable: true,
    sql: `to_char(s.digest_day, 'YYYY-MM-DD')`,
    example: '2026-10-25',
  }),
})

const hour = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: 23, description }))

const get = reading({
  id: 'getAlertSettings',
  right: 'setup',
  command: 'alert settings',
  path: PATH,
  tag: ALERTS_TAG,
  summary: 'Get the hours of the digest and of quiet',
  response: settings.schema,
  async run({ db }, { params }) {
    return read(db.query, params.project_id)
  },
})

const put = change({
  id: 'putAlertSettings',
  right: 'webhooks',
  command: 'alert configure',
  method: 'PUT',
  path: PATH,
  tag: ALERTS_TAG,
  summary: 'Set the hours of the digest and of quiet',
  description: 'What is left out is switched off. The first digest is sent when its hour next begins.',
  body: Type.Named('NewAlertSettings', {
    digest_hour: hour('The hour of the morning digest, in the time zone of the project.'),
    quiet_from: hour('The hour from which on messages wait.'),
    quiet_to: hour('The hour until which they wait.'),
  }),
  response: settings.schema,
  checkInput({ body: { quiet_from, quiet_to } }) {
    if ((quiet_from === undefined) !== (quiet_to === undefined))
      throw invalidValue('quiet_from and quiet_to must be given together.')
    if (quiet_from !== undefined && quiet_from === quiet_to) throw invalidValue('quiet_from and quiet_to must differ.')
  },
  async change(query, { params, body }) {
    const projectId = params.project_id
    await ensureAlertSettings(query, projectId)
    const before = await read(query, projectId)
    const { digest_hour = null, quiet_from = null, quiet_to = null } = body
    await query(SET, [projectId, digest_hour, quiet_from, quiet_to])
    const result = await read(query, projectId)
    return { entry: { action: 'alerts.configured', target: `project ${projectId}`, before, after: result }, result }
  },
})

// A digest whose hour of today is over is not sent at once. If the hour is to come, no message of yesterday is sent twice: they are unique.
const SET = `
  update alert_settings s set digest_hour = $2::int, quiet_from = $3, quiet_to = $4,
    digest_day = case when $2::int <= extract(hour from now.local)
      then now.local::date - 1 else least(s.digest_day, now.local::date - 2) end
  from (select db_clock() at time zone time_zone as local from projects where id = $1) now
  where s.project_id = $1`

async function read(query: Query, projectId: string): Promise<object> {
  const [row] = await query(`select ${settings.namedColumns} from alert_settings s where s.project_id = $1`, [
    projectId,
  ])
  return row ? settings.readNamed(row!) : NONE
}

const NONE = { digest_hour: null, quiet_from: null, quiet_to: null, digest_day: null } satisfies NamedRow

export const alertSettings = [get, put] as const
