// A reply to a form element of a session: the API's two shapes, the import's fields, and what an erasure removes.
import { instant, integer, json, object, shape, text } from '../../lib/shape/shape.ts'
import { group, required } from './import/fields.ts'
import * as from from './import/types.ts'
import { field, importedOnly, record, shownFields } from './record.ts'

const value = {
  nullable: true,
  schema: { type: ['string', 'array', 'null'], items: { type: 'string' } },
  description: 'A string, an array of strings (multiple choice), or null if empty or erased. At most 64 KiB.',
}

const fields = {
  session_id: importedOnly(required(from.id), { refersTo: 'session' }),
  element: field(
    object('Element of the form.', {
      id: text('Identifier.', { sql: 'r.element_id' }),
      type: text('Kind of element.', { sql: 'r.element_type', example: 'Input' }),
      custom_id: text('Name given by the team.', { sql: 'r.element_custom_id', nullable: true }),
    }),
    required(group({ id: required(from.id), type: required(from.label), custom_id: from.label })),
  ),
  screen: field(
    object('Screen that it is on.', {
      id: text('Identifier.', { sql: 'r.screen_id' }),
      index: integer('Place in the funnel, from 0.', { sql: 'r.screen_index', example: 0 }),
      custom_id: text('Name given by the team.', { sql: 'r.screen_custom_id', nullable: true }),
    }),
    required(group({ id: required(from.id), index: required(from.integer(0)), custom_id: from.label })),
  ),
  value: importedOnly(from.answer, { erased: () => "'null'" }),
}

export const replyRecord = record({
  name: 'reply',
  table: 'replies',
  key: ['session_id', 'screen_id', 'element_id'],
  fields,
})

/** As it is shown within its session. */
export const reply = shape('Reply', 'r', {
  element_id: text('Element of the form.'),
  screen_id: text('Screen that it is on.'),
  value: json(value.description, value),
})

/** As it is shown in the list of a session's replies. */
export const replyDetail = shape('ReplyDetail', 'r', {
  ...shownFields(fields),
  state: object('The answer.', { value: json(value.description, { ...value, sql: 'r.value' }) }),
})

// Written as `replyDetail` is, in screen order.
const AS_JSON = `(
  select coalesce(json_agg(json_build_object(
    'element', json_build_object('id', r.element_id, 'type', r.element_type, 'custom_id', r.element_custom_id),
    'screen', json_build_object('id', r.screen_id, 'index', r.screen_index, 'custom_id', r.screen_custom_id),
    'state', json_build_object('value', r.value)
  ) order by r.screen_index, r.screen_id, r.element_id), '[]')
  from replies r where r.project_id = s.project_id and r.session_id = s.id)`

/** All replies of a session, as the list of all replies shows them; `s` is the session. */
export const sessionReplies = shape('SessionReplies', 's', {
  session_id: text('Session.', { sql: 's.id', example: 'ses_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
  profile_id: text('Profile of the session.'),
  funnel_id: text('Funnel of the session.', { nullable: true }),
  created_at: instant('When the session began.'),
  updated_at: instant('When the session or one of its replies was last changed.'),
  replies: json('Its replies, in the order of the screens; empty if there are none.', {
    sql: AS_JSON,
    schema: { type: 'array', items: replyDetail.schema },
  }),
})
