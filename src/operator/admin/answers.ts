// What people answer: the replies to the questions of a screen, by value.
import { readHorizon } from '../../core/lists/horizon.ts'
import { KINDS, readAnswers } from '../../data/figures/answers.ts'
import { addDays } from '../../lib/days.ts'

import { Type } from '../../lib/shape/schema.ts'
import { isId } from '../../lib/text.ts'
import { notFound, requireFunnel } from './exist.ts'
import { daysOf, daysQuery, nowFields, nowOf, readDays, TAG, testQuery } from './figures-query.ts'
import { reading } from './operation.ts'

const row = Type.Named('Answer', {
  element_id: Type.String({ description: 'The question: an element of the screen.' }),
  name: Type.OrNull(
    Type.String(),
    'The custom id of the question in the newest 300 sessions of the funnel; null if it has none.',
  ),
  kind: Type.String({
    enum: ['all', ...KINDS],
    description:
      '`all`: every reply; `value`: a choice; `written`: a text, which is not shown; `empty`; `other`: choices beyond the 1,000 most frequent of a day; `erased`.',
  }),
  value: Type.String({ description: 'The choice, cut to 100 characters; empty for all other kinds.' }),
  sessions: Type.Integer({ description: 'Sessions with this answer.' }),
  share: Type.OrNull(
    Type.Number(),
    'Their share of the sessions that replied to the question. Each of several choices counts.',
  ),
  paid: Type.Integer({ description: 'Those of them that led to a payment of more than 0.' }),
  conversion_rate: Type.OrNull(Type.Number(), 'Paid divided by sessions.'),
})

const answers = reading({
  id: 'getAnswers',
  right: 'figures',
  command: 'figures answers',
  path: '/projects/:project_id/funnels/:funnel_id/screens/:screen_id/answers',
  tag: TAG,
  summary: 'Get what people answer on a screen',
  description: 'Sessions that began on these days, by what they replied, and how many of them led to a payment.',
  query: Type.Object({
    ...daysQuery,
    ...testQuery,
  }),
  response: Type.Named('Answers', {
    from: Type.String({ description: 'The first day.' }),
    to: Type.String({ description: 'The last day.' }),
    time_zone: nowFields.time_zone,
    data: Type.Array(row, { description: 'By question; the most frequent values first.' }),
  }),
  checkInput: ({ query }) => readDays(query),
  async run({ db }, { params, query }) {
    const { test = false } = query
    const [project, funnel, screen] = [params.project_id, params.funnel_id, params.screen_id]
    await requireFunnel(db.query, project, funnel)
    if (!isId(screen)) throw notFound('screen', screen)
    await readHorizon(db, project)
    const { today, time_zone } = await nowOf(db, project)
    const days = daysOf(query, today)
    const [found, named] = await Promise.all([
      readAnswers(db, { project, funnel, screen, ...days, test }),
      db.query(NAMES, [project, funnel, screen]),
    ])
    const names = new Map(named.map(({ element_id, name }) => [element_id, name]))
    const data = found.map(({ element_id, ...one }) => ({ element_id, name: names.get(element_id) ?? null, ...one }))
    return { from: days.from, to: addDays(days.to, -1), time_zone, data }
  },
})

const NAMES = `
  select element_id, min(element_custom_id) as name
  from (select project_id, id from sessions where project_id = $1 and funnel_id = $2 order by created_at desc, id desc limit 300) s
  join replies r on r.project_id = s.project_id and r.session_id = s.id and r.screen_id = $3
  group by element_id`

export const answerOperations = [answers] as const
