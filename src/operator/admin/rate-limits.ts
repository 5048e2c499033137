// Rate limits: requests a second of an organization's key, or of each key of a project.

import { checkRateLimit, setRateLimit } from '../../core/limits/setting.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import type { Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { change, type Input } from './operation.ts'

const body = Type.Named('RateLimitSetting', {
  rate_limit: Type.String({
    description:
      'Requests a second, such as `200`, and how many at once, such as `200/1000`; `off` for no limit; `default` for the setting RATE_LIMIT.',
    examples: ['200/1000'],
    maxLength: 64,
    [DECLARED_ONLY]: { pattern: '^(off|default|[1-9][0-9]{0,5}(/[1-9][0-9]{0,6})?)$' },
  }),
})

const response = Type.Named('RateLimit', {
  rate_limit: Type.String({ description: 'The limit from now on.', examples: ['200/1000'] }),
})

/** What the operations for organizations and projects have in common. */
const about = {
  method: 'PUT',
  tag: 'Tenants',
  body,
  response,
  checkInput: ({ body }: Pick<Input, 'body'>) => checkRateLimit(body.rate_limit as string),
} as const

const ofOrganization = change({
  ...about,
  id: 'setOrganizationRateLimit',
  right: 'manage',
  command: 'org set',
  path: '/organizations/:organization_id/rate-limit',
  summary: 'Set the rate limit of the keys of an organization',
  change: (query, { params, body }) => setLimit(query, 'organization', params.organization_id, body),
})

const ofProject = change({
  ...about,
  id: 'setProjectRateLimit',
  right: 'manage',
  command: 'project set',
  path: '/projects/:project_id/rate-limit',
  summary: 'Set the rate limit of the keys of a project',
  change: (query, { params, body }) => setLimit(query, 'project', params.project_id, body),
})

export const rateLimits = [ofOrganization, ofProject] as const

async function setLimit(query: Query, owner: 'organization' | 'project', id: string, body: Input['body']) {
  const { before, after } = await setRateLimit(query, owner, id, body.rate_limit as string)
  const entry = {
    action: 'rate_limit.set',
    target: `${owner} ${id}`,
    before: { rate_limit: before },
    after: { rate_limit: after },
  }
  return { entry, result: { rate_limit: after } }
}
