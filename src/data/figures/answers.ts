// Figures of answers: what is replied to each question, by the day on which the session began, with the sessions that led to a payment.
import type { Db } from '../../lib/pg/db.ts'
import { dayOf, type Family, orNone, within } from './family.ts'
import { share } from './rounding.ts'
import { PAID } from './visits.ts'

/** The most values of choices that are kept a day and project; the others are of the kind `other`. */
const MAX_VALUES = 1000

/** What a reply contains. A text that was written is counted, and never shown: it would make figures a list of personal data. */
export const KINDS = ['value', 'written', 'empty', 'other', 'erased'] as const
export type AnswerKind = (typeof KINDS)[number]

// An array is a multiple choice. All other elements are free text, unless their type says that the visitor chooses.
const IS_CHOICE = `(json_typeof(r.value) = 'array' or r.element_type ~* 'select|choice|option|radio|checkbox|dropdown|rating|scale|toggle|boolean')`

// PostgreSQL cannot read all that JSON can write: neither a null character nor half of a surrogate pair.
const READABLE = String.raw`regexp_replace(r.value::text, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json`

const TEXTS = `json_array_elements_text(case json_typeof(r.value)
  when 'array' then ${READABLE} when 'string' then json_build_array(${READABLE}) else '[]' end)`

const TIDY = `trim(regexp_replace(left(raw, 1000), '[[:cntrl:][:space:]]+', ' ', 'g'))`

// The rules of `clean` in core/records/visit.ts: an e-mail address, a phone number, or a token.
const DIGITS = `length(regexp_replace(text, '[^0-9]', '', 'g'))`
const IS_PERSONAL = String.raw`(
  text ~ '@|%40'
  or ${DIGITS} >= 7 and (text ~ '^(\+|00)[0-9 ().\-/]{6,}$'
    or text ~ '^[0-9(][0-9 ().\-/]{5,}[0-9]$' and (text ~ '^[0-9]+$' or ${DIGITS} > 8))
  or text ~* '[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}'
  or text ~ '^ey[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+'
  or length(text) >= 16 and exists (
    select from regexp_split_to_table(text, '[^A-Za-z0-9]+') word
    where length(word) >= 16 and regexp_count(word, '[0-9](?=[a-z])|[a-z](?=[0-9])', 1, 'i') >= 2))`

/** SQL: a row with `kind` and `value` for each of what the reply `r` of a session of the profile `p` contains. */
export const ANSWERS_OF_REPLY = `
  select distinct kind, case kind when 'value' then trim(left(text, 100)) else '' end as value
  from (
    select text, case when ${IS_CHOICE} and not ${IS_PERSONAL} then 'value' else 'written' end as kind
    from (select ${TIDY} as text from ${TEXTS} raw) tidied where text <> '') given
  union all
  select case when p.anonymized_at is null then 'empty' else 'erased' end, ''
  where not exists (select from ${TEXTS} raw where ${TIDY} <> '')`

export const answers: Family = {
  name: 'visits',
  table: 'figures_answers',
  dimensions: ['funnel', 'screen'],
  splits: [['funnel', 'screen']],
  also: { element: 'text', kind: 'text', value: 'text' },
  money: false,
  measures: ['sessions', 'paid'],
  facts: `
    with paid as materialized (${PAID}), replied as (
      select ${dayOf('s.created_at')} as day, p.preview as test, ${orNone('s.funnel_id')} as funnel, r.screen_id as screen,
        r.element_id as element, answer.kind, answer.value,
        ((s.profile_id, s.id) in (select profile_id, session_id from paid))::int as paid
      from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
      join replies r on r.project_id = s.project_id and r.session_id = s.id
      cross join lateral (select 'all' as kind, '' as value union all ${ANSWERS_OF_REPLY}) answer
      where s.project_id = $1 and ${within('s.created_at')}
    ), counted as (
      select day, test, funnel, screen, element, kind, value, count(*) as sessions, sum(paid) as paid,
        sum(count(*)) over (partition by day, funnel, screen, element, kind, value) as weight
      from replied group by day, test, funnel, screen, element, kind, value
    ), ranked as (
      select *, dense_rank() over (partition by day, kind order by weight desc, value, funnel, screen, element) as place from counted
    )
    select day, test, funnel, screen, element, sessions, paid,
      case when kind = 'value' and place > ${MAX_VALUES} then 'other' else kind end as kind,
      case when place > ${MAX_VALUES} then '' else value end as value
    from ranked`,
}

export interface AnswersQuestion {
  project: string
  funnel: string
  screen: string
  /** `to` is the day after the last. */
  from: string
  to: string
  test: boolean
}

export interface Answer {
  element_id: string
  kind: AnswerKind | 'all'
  /** The choice; empty for all other kinds. */
  value: string
  sessions: number
  /** The share of the sessions that replied to the question; with several choices in a reply, shares are more than 1 in all. */
  share: number | null
  /** Those of the sessions that led to a payment. */
  paid: number
  conversion_rate: number | null
}

/** By question: all replies, then the values with the most sessions first, then what has no value. */
export async function readAnswers(db: Db, question: AnswersQuestion): Promise<Answer[]> {
  const { project, funnel, screen, from, to, test } = question
  const rows = await db.query(READ, [project, funnel, screen, from, to, test])
  const replies = new Map(rows.flatMap(({ element, kind, sessions }) => (kind === 'all' ? [[element, sessions]] : [])))
  return rows
    .map(({ element, kind, value, sessions, paid }): Answer => {
      const count = Number(sessions)
      return {
        element_id: element!,
        kind: kind as Answer['kind'],
        value: value!,
        sessions: count,
        share: share(count, Number(replies.get(element!))),
        paid: Number(paid),
        conversion_rate: share(Number(paid), count),
      }
    })
    .sort(
      (a, b) =>
        (a.element_id < b.element_id ? -1 : a.element_id > b.element_id ? 1 : 0) ||
        ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) ||
        b.sessions - a.sessions ||
        (a.value < b.value ? -1 : 1),
    )
}

const ORDER: Answer['kind'][] = ['all', ...KINDS]

const READ = `
  select element, kind, value, sum(sessions) as sessions, sum(paid) as paid from figures_answers
  where project_id = $1 and split = 'funnel_screen' and key = $2 and subkey = $3 and day >= $4::date and day < $5::date
    and (not test or $6)
  group by element, kind, value`
