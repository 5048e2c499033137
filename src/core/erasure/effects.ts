// The effects of an erasure in the database, a statement for each table.
import { type Holds, typesThatHold } from '../events/catalogue.ts'
import { customerRecord } from '../records/customer.ts'
import { profileRecord } from '../records/profile.ts'
import { erasedColumns, hasPersonalData } from '../records/record.ts'
import { replyRecord } from '../records/reply.ts'
import { sessionRecord } from '../records/session.ts'
import { dayIn, zoneOf } from '../tenants/reporting.ts'
import { QUEUE_AT_PROVIDER } from './provider-targets.ts'

// $1 is the project, $2 the profiles, $3 the least stamp.
const STAMP = "greatest(db_clock(), $3::timestamptz, updated_at + interval '1 microsecond')"
const SESSIONS = 'select id from sessions where project_id = $1 and profile_id = any($2)'
const CUSTOMERS = 'select organization_id, external_id from customers where project_id = $1 and profile_id = any($2)'
const EVENTS = 'select id from events where project_id = $1 and profile_id = any($2)'
// Events of other profiles that hold data of these, by what their kinds hold. Events written after an erasure hold none of it.
const EVENTS_BESIDE: Record<Exclude<Holds, 'no person' | 'profile'>, string> = {
  'session in data': `
    select id from events
    where project_id = $1 and type in (${kinds('session in data')}) and data #>> '{session,user_agent}' is not null
      and data #>> '{session,id}' in (${SESSIONS})`,
  session: `
    select id from events
    where project_id = $1 and type in (${kinds('session')}) and object_id in (${SESSIONS}) and profile_id <> all($2)`,
  order: `
    select e.id from orders o join events e on e.project_id = $1 and e.object_id = o.order_id::text
    where (o.organization_id, o.external_id) in (${CUSTOMERS}) and e.type in (${kinds('order')})
      and e.data ->> 'client_metadata' is not null`,
}
// The exact text that is written for events with the id alone, so that those need no update.
const ID_ALONE = `'{"id":' || to_json(object_id) || '}'`

/** Reduces the data of events to the id, and deletes receivers' responses, which may repeat the data. */
const emptied = (ids: string) => [
  // Locked first, because a process that stores a response locks its event.
  `with locked as materialized (select from events where project_id = $1 and id in (${ids}) order by id for no key update)
   select count(*) from locked`,
  `update webhook_attempts set answer = null where project_id = $1 and event_id in (${ids}) and answer is not null`,
  `update events set data = (${ID_ALONE})::json
   where project_id = $1 and id in (${ids}) and data::text <> ${ID_ALONE}`,
]

/** Marks the days whose figures of answers count them as erased from now on. */
const markAnswers = (replies: string) => `
  insert into figure_marks (project_id, family, day)
  select distinct $1, 'visits', ${dayIn('s.created_at', zoneOf('$1'))} from sessions s
  where s.project_id = $1 and s.profile_id = any($2) and isfinite(s.created_at) and exists (
    select from replies r where r.project_id = $1 and r.session_id = s.id and ${replies})`

/** For profiles that are erased for the first time. */
export const ON_PERSONS = [
  `update profiles set email_erased = email_erased or email is not null, ${erasedColumns(profileRecord)},
     anonymized_at = $3, updated_at = ${STAMP}
   where project_id = $1 and id = any($2)`,
  // Their nested e-mail changed: a sync must see it.
  `update subscriptions set updated_at = ${STAMP} where project_id = $1 and profile_id = any($2)`,
  markAnswers('true'),
  ...emptied(EVENTS),
]

/** For an erased profile that another was merged into: what was written about that one. */
export const ON_MERGED = emptied(EVENTS)

/** For every profile: an erased one may have new rows. Each statement skips rows that are wiped already. */
export const ON_BELONGINGS = [
  // A program of an older version erased it, without the columns that it does not know.
  `update profiles set ${erasedColumns(profileRecord)}, updated_at = ${STAMP}
   where project_id = $1 and id = any($2) and anonymized_at is not null and ${hasPersonalData(profileRecord)}`,
  ...QUEUE_AT_PROVIDER,
  // Their nested user agent changes, also under other profiles: a sync must see it.
  `update subscriptions set updated_at = ${STAMP}
   where project_id = $1 and session_id in (${SESSIONS} and user_agent is not null)`,
  `update sessions set ${erasedColumns(sessionRecord)}, updated_at = ${STAMP}
   where project_id = $1 and profile_id = any($2) and (${hasPersonalData(sessionRecord)} or
     exists (select from replies r where r.project_id = $1 and r.session_id = sessions.id and ${hasPersonalData(replyRecord, 'r')}))`,
  markAnswers(hasPersonalData(replyRecord, 'r')),
  `update replies set ${erasedColumns(replyRecord)}
   where project_id = $1 and session_id in (${SESSIONS}) and ${hasPersonalData(replyRecord)}`,
  `update orders set client_metadata = null
   where (organization_id, external_id) in (${CUSTOMERS}) and client_metadata is not null`,
  `update refunds set reason = '', comment = ''
   where (organization_id, external_id) in (${CUSTOMERS}) and (reason <> '' or comment <> '')`,
  `update credit_entries set reason = null, metadata = null, updated_at = ${STAMP}
   where (organization_id, external_id) in (${CUSTOMERS}) and (reason is not null or metadata is not null)`,
  // Nothing is charged for a person who is erased unless a program asks for it.
  `update credit_top_ups set status = 'off', off_reason = 'erased', due_at = null, updated_at = db_clock()
   where (organization_id, external_id) in (${CUSTOMERS}) and status = 'on'`,
  `update customers set ${erasedColumns(customerRecord)}
   where project_id = $1 and profile_id = any($2) and ${hasPersonalData(customerRecord)}`,
  ...emptied(Object.values(EVENTS_BESIDE).join(' union ')),
]

function kinds(holds: Holds): string {
  return typesThatHold(holds)
    .map((type) => `'${type}'`)
    .join(', ')
}
