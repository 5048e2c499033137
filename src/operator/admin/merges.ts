// The operations that merge two profiles of one person.
import { mergeProfiles, previewMerge } from '../../core/people/merge.ts'
import { Type } from '../../lib/shape/schema.ts'
import { instant, json, shape, text } from '../../lib/shape/shape.ts'
import { requireProject } from './exist.ts'
import { list, ofProject } from './list.ts'
import { act, type Input, reading } from './operation.ts'

/** Fields of a profile `p`. */
export const aliasFields = {
  merged_into: text('The profile that it was merged into.', {
    sql: '(select a.profile_id from profile_aliases a where a.project_id = p.project_id and a.alias = p.id)',
    nullable: true,
  }),
  also_known_as: json('Other ids that stand for it: of merged profiles, and of customers at the payment provider.', {
    sql: `(select coalesce(json_agg(a.alias order by a.alias), '[]') from profile_aliases a
      where a.project_id = p.project_id and a.profile_id = p.id)`,
    schema: Type.Array(Type.String()),
  }),
}

const PATH = '/projects/:project_id/profiles/:profile_id/merge/:into_id'
const TAG = 'Profiles'

const moved = Type.Named('Merge', {
  from: Type.String({
    description: 'The profile that ends. It remains without personal data, and its id stands for the other.',
  }),
  into: Type.String({ description: 'The profile that remains.' }),
  sessions: Type.Integer({ description: 'Number of sessions that move.' }),
  subscriptions: Type.Integer({ description: 'Number of subscriptions that move.' }),
  transactions: Type.Integer({ description: 'Number of transactions that move.' }),
  customers: Type.Integer({
    description: 'Number of billing customers that move, with their orders, cards and credits.',
  }),
})

const pairOf = ({ params }: Input<typeof PATH>) => ({
  projectId: params.project_id,
  from: params.profile_id,
  into: params.into_id,
})

const preview = reading({
  id: 'previewMerge',
  right: 'people',
  command: 'profile preview-merge',
  path: PATH,
  tag: TAG,
  summary: 'Get what a merge of two profiles would move',
  mayRefuse: true,
  response: moved,
  async run({ db }, input) {
    const pair = pairOf(input)
    return { from: pair.from, into: pair.into, ...(await previewMerge(db.query, pair)) }
  },
})

const merge = act({
  id: 'mergeProfiles',
  right: 'manage',
  command: 'profile merge',
  method: 'POST',
  path: PATH,
  tag: TAG,
  summary: 'Merge a profile into another',
  description:
    'For two profiles of one person: sessions, subscriptions, transactions and billing customers move to the second profile, in one transaction and with new stamps. It gets what it lacks of the e-mail address, phone, country, language and ids in other systems. The first profile remains without personal data; whatever names it later is taken as naming the second. This cannot be undone.',
  response: moved,
  entry: (input) => {
    const { projectId, from, into } = pairOf(input)
    return { action: 'profile.merge_asked', target: `project ${projectId}`, after: { from, into } }
  },
  async describe({ db }, input) {
    const pair = pairOf(input)
    await requireProject(db.query, pair.projectId)
    const { sessions, subscriptions, transactions, customers } = await previewMerge(db.query, pair)
    return [
      `${pair.from} moves into ${pair.into}: sessions ${sessions}, subscriptions ${subscriptions}, transactions ${transactions}, billing customers ${customers}.`,
      `${pair.from} loses its personal data, and its id stands for ${pair.into}.`,
    ].join('\n')
  },
  async act({ db, audit }, input, actor) {
    const pair = pairOf(input)
    return { from: pair.from, into: pair.into, ...(await mergeProfiles({ db, audit }, actor, pair)) }
  },
})

const waitingLink = shape('WaitingLink', 'w', {
  record: text('`profile`, `subscription` or `transaction`.'),
  id: text('The record. A profile is to be merged into the one that it names, or into that of the session.'),
  field: text('`profile_id`, `session_id`, `funnel_id` or `experiment_id`.'),
  named: text('The id that is named, for example in the metadata at Stripe, and is not stored.'),
  created_at: instant('Since when it waits.'),
})

const waiting = list({
  id: 'listWaitingLinks',
  right: 'people',
  command: 'profile waiting',
  path: '/projects/:project_id/waiting-links',
  tag: TAG,
  summary: 'List names of records that are not stored',
  shape: waitingLink,
  from: 'waiting_links w',
  at: 'w.created_at',
  key: `w.record || ' ' || w.id || ' ' || w.field`,
  ...ofProject('w'),
})

export const merges = [preview, merge, waiting] as const
