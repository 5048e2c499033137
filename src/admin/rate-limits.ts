// Rate limits: requests a second of an organization's key, or of each key of a project.
import { DECLARED_ONLY } from '../lib/http/rule-phrases.ts'
import { Type } from '../lib/shape/schema.ts'
import { setRateLimit } from '../limits/setting.ts'
import { requireOrganization, requireProject } from './exist.ts'
import type { Change } from './operation.ts'

const body = Type.Object(
  {
    rate_limit: Type.String({
      description:
        'Requests a second, such as `200`, and how many at once, such as `200/1000`; `off` for no limit; `default` for the setting RATE_LIMIT.',
      examples: ['200/1000'],
      maxLength: 64,
      [DECLARED_ONLY]: { pattern: '^(off|default|[1-9][0-9]{0,5}(/[1-9][0-9]{0,6})?)$' },
    }),
  },
  { title: 'RateLimitSetting', additionalProperties: false },
)

const response = Type.Object(
  { rate_limit: Type.String({ description: 'The limit from now on.', examples: ['200/1000'] }) },
  { title: 'RateLimit', additionalProperties: false },
)

const ofOrganization: Change = {
  id: 'setOrganizationRateLimit',
  command: 'org set',
  method: 'PUT',
  path: '/organizations/:organization_id/rate-limit',
  tag: 'Tenants',
  summary: 'Set the rate limit of the keys of an organization',
  body,
  response,
  async change(query, { params, body }) {
    const { organization_id: id } = params as { organization_id: string }
    await requireOrganization(query, id)
    const { before, after } = await setRateLimit(query, { organization: id }, body.rate_limit as string)
    return { entry: entry(`organization ${id}`, before, after), result: { rate_limit: after } }
  },
}

const ofProject: Change = {
  id: 'setProjectRateLimit',
  command: 'project set',
  method: 'PUT',
  path: '/projects/:project_id/rate-limit',
  tag: 'Tenants',
  summary: 'Set the rate limit of the keys of a project',
  body,
  response,
  async change(query, { params, body }) {
    const { project_id: id } = params as { project_id: string }
    await requireProject(query, id)
    const { before, after } = await setRateLimit(query, { project: id }, body.rate_limit as string)
    return { entry: entry(`project ${id}`, before, after), result: { rate_limit: after } }
  },
}

export const rateLimits = [ofOrganization, ofProject]

function entry(target: string, before: string, after: string) {
  return { action: 'rate_limit.set', target, before: { rate_limit: before }, after: { rate_limit: after } }
}
