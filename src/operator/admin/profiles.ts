// The people of a project: the list, and the operation that erases one.
import { erase } from '../../core/erasure/erasure.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, instant, shape, text } from '../../lib/shape/shape.ts'
import { foldQueriedEmail } from '../../lib/text.ts'
import { dayFilters, firstVisitFilters, valueFilter } from './day-filters.ts'
import { notFound, requireProject } from './exist.ts'
import { equalsOrNone, list, ofProject } from './list.ts'
import { act } from './operation.ts'
import { twinsOf } from './twins.ts'

const profile = shape('ProfileSummary', 'p', {
  id: text('Identifier.'),
  created_at: instant('When it was created.'),
  email: text('E-mail address.', { nullable: true }),
  country: text('Country.', { nullable: true }),
  locale: text('Language.', { nullable: true }),
  funnel_id: text('Funnel of the first visit.', { nullable: true }),
  preview: boolean('Whether it is a preview, not a visitor.'),
  anonymized_at: instant('When the person was erased.', { nullable: true }),
  subscription_status: text('State of the newest subscription; null if there is none.', {
    sql: `(select u.status from subscriptions u where u.project_id = p.project_id and u.profile_id = p.id
      order by u.created_at desc, u.id desc limit 1)`,
    nullable: true,
  }),
})

const listProfiles = list({
  id: 'listProjectProfiles',
  right: 'people',
  command: 'profile list',
  path: '/projects/:project_id/profiles',
  tag: 'Profiles',
  summary: 'List people',
  description: 'The newest first: those with an e-mail address, then the others.',
  shape: profile,
  from: 'profiles p',
  at: 'p.created_at',
  key: 'p.id',
  ...ofProject('p'),
  filters: {
    funnel_id: equalsOrNone('p.funnel_id', 'Only those whose first visit was to this funnel.'),
    ...dayFilters('p.created_at'),
    country: valueFilter('p.country', 'Only those from this country.'),
    ...firstVisitFilters('p.project_id', 'p.id'),
    email: {
      schema: Type.String({ description: 'Only those with this e-mail address, case-insensitive.' }),
      where: (value) => `p.email_folded = ${value}`,
      param: foldQueriedEmail,
    },
  },
  parts: {
    filter: 'anonymous',
    schema: Type.Boolean({ description: 'Whether they are without an e-mail address.' }),
    first: 'p.email_folded is not null',
    others: 'p.email_folded is null',
  },
})

const eraseProfile = act({
  id: 'eraseProfile',
  right: 'erase',
  command: 'profile erase',
  method: 'POST',
  path: '/projects/:project_id/profiles/:profile_id/erase',
  tag: 'Profiles',
  summary: 'Erase the personal data of a person',
  description:
    'Erases the personal data of the profile and of all its sessions for good, like `POST /profiles/anonymize` of the data API. Subscriptions and transactions stay. Other profiles of the same person are named and, with `with_twins`, erased in the same transaction.',
  body: Type.Named('ProfileErasure', {
    with_twins: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Also erases the other profiles of the project with the same e-mail address or customer.',
      }),
    ),
  }),
  response: Type.Named('ProfileErased', {
    id: Type.String({ description: 'The erased profile.' }),
    erased: Type.Array(Type.String(), { description: 'All profiles that were erased.' }),
    same_person: Type.Array(Type.String(), {
      description: 'Other profiles of the project with the same e-mail address or customer: they were not erased.',
    }),
  }),
  entry: ({ params, body }) => ({
    action: 'profile.erase_asked',
    target: `project ${params.project_id}`,
    after: { profile_ids: [params.profile_id], ...(body.with_twins === true && { with_twins: true }) },
  }),
  async describe({ db }, { params, body }) {
    const { project_id, profile_id } = params
    await requireProject(db.query, project_id)
    const [found] = await db.query(
      `select p.anonymized_at, (select count(*) from sessions s where s.project_id = p.project_id and s.profile_id = p.id) as sessions
       from profiles p where p.project_id = $1 and p.id = $2`,
      [project_id, profile_id],
    )
    if (!found) throw notFound('profile', profile_id)
    const twins = (await twinsOf({ db }, project_id, profile_id)).map(({ id }) => id).join(', ')
    const sentences = [
      `Erases the personal data of profile ${profile_id} of project ${project_id}: e-mail address, phone number, replies, and the visitor's data in its sessions (${found.sessions}). Subscriptions and transactions stay.`,
    ]
    if (found.anonymized_at !== null) sentences.push('It has been erased before.')
    if (twins !== '')
      sentences.push(
        body.with_twins === true
          ? `Also erases the other profiles of this person: ${twins}.`
          : `Not erased, though probably the same person: ${twins}. Add --with-twins to erase them too.`,
      )
    return sentences.join('\n')
  },
  async act({ db, audit, config }, { params, body }, actor) {
    const { project_id, profile_id } = params
    const erasing = { db, audit, erasureLedger: config.erasureLedger }
    const withTwins = body.with_twins === true
    const { missing, erased, twins } = await erase(erasing, actor, project_id, [profile_id], { withTwins })
    if (missing.length > 0) throw notFound('profile', profile_id)
    return { id: profile_id, erased, same_person: twins }
  },
})

export const profiles = [listProfiles, eraseProfile] as const
