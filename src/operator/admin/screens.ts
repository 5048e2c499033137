// The names of a funnel's screens: what the builder calls them and the questions on them, as replies have them.
import { Type } from '../../lib/shape/schema.ts'
import { requireFunnel } from './exist.ts'
import { reading } from './operation.ts'

const screens = reading({
  id: 'getFunnelScreens',
  right: 'figures',
  command: 'funnel screens',
  path: '/projects/:project_id/funnels/:funnel_id/screens',
  tag: 'State',
  summary: 'Get the names of the screens of a funnel',
  description: 'From the replies of its newest 300 sessions: a screen that none of them answered is missing.',
  response: Type.Named('FunnelScreens', {
    data: Type.Array(
      Type.Named('FunnelScreen', {
        screen_id: Type.String({ description: 'Screen.' }),
        name: Type.OrNull(
          Type.String(),
          'The custom id of the screen, or those of its questions; null if it has none.',
        ),
      }),
      { description: 'An item for each screen, in their order.' },
    ),
  }),
  async run({ db }, { params }) {
    const names = [params.project_id, params.funnel_id]
    await requireFunnel(db.query, params.project_id, params.funnel_id)
    return { data: await db.query(SCREENS, names) }
  },
})

const SCREENS = `
  select screen_id, coalesce(min(screen_custom_id), string_agg(distinct element_custom_id, ', ')) as name
  from (select project_id, id from sessions where project_id = $1 and funnel_id = $2 order by created_at desc, id desc limit 300) s
  join replies r on r.project_id = s.project_id and r.session_id = s.id
  group by screen_id order by min(screen_index), screen_id`

export const funnelScreens = [screens] as const
