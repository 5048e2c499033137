// The operation that erases a person.
import { erase } from '../erasure/erasure.ts'
import { Type } from '../lib/shape/schema.ts'
import { absent, requireProject } from './exist.ts'
import type { Act, Operation } from './operation.ts'

const eraseProfile: Act = {
  id: 'eraseProfile',
  command: 'profile erase',
  method: 'POST',
  path: '/projects/:project_id/profiles/:profile_id/erase',
  tag: 'Profiles',
  summary: 'Erase the personal data of a person',
  description:
    'Erases the personal data of the profile and of all its sessions for good, like `POST /profiles/anonymize` of the data API. Subscriptions and transactions stay.',
  response: Type.Object(
    { id: Type.String({ description: 'The erased profile.' }) },
    { title: 'ProfileErased', additionalProperties: false },
  ),
  entry: ({ params }) => ({
    action: 'profile.erase_asked',
    target: `project ${params.project_id}`,
    after: { profile_ids: [params.profile_id] },
  }),
  async act({ db, audit, config }, { params }, actor) {
    const { project_id, profile_id } = params as { project_id: string; profile_id: string }
    await requireProject(db.query, project_id)
    const [missing] = await erase({ db, audit, erasureLedger: config.erasureLedger }, actor, project_id, [profile_id])
    if (missing !== undefined) throw absent('profile', profile_id)
    return { id: profile_id }
  },
}

export const profiles: Operation[] = [eraseProfile]
