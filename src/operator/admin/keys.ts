// Secret keys of organizations and projects, and the operators' own keys.

import { readKeyRate } from '../../core/limits/setting.ts'
import { operatorKey } from '../../core/tenants/operator-keys.ts'
import { ORGANIZATION_SCOPES, PROJECT_SCOPES, requireMaker } from '../../core/tenants/scopes.ts'
import { createKey, revokeKey, rotateKey, secretKey } from '../../core/tenants/secret-keys.ts'
import { checkName, type Tenant } from '../../core/tenants/tenants.ts'
import { DAY_S } from '../../lib/days.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { isUuid } from '../../lib/ids.ts'
import type { Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { requireProject } from './exist.ts'
import { list } from './list.ts'
import { nameField } from './names.ts'
import { change } from './operation.ts'

const LONGEST_OVERLAP_SECONDS = 365 * DAY_S

const purpose = nameField('Purpose of the key.')

const keyMade = Type.Named('SecretKeyMade', {
  id: Type.String({ description: 'Identifier of the key.' }),
  name: Type.String({ description: 'Purpose of the key.' }),
  secret_key: Type.String({ description: 'The key, shown only now.' }),
  webhook_secret: Type.Optional(
    Type.String({ description: 'For a project: the same key in the form that webhook libraries take.' }),
  ),
  scopes: Type.OrNull(Type.Array(Type.String()), 'What a scoped key may do; null for a full key.'),
  rate_limit: Type.OrNull(
    Type.String(),
    'Its own limit of requests a second, and how many at once; null if it has that of the other keys.',
  ),
  expires_at: Type.OrNull(Type.String({ format: 'date-time' }), 'When it ends.'),
  previous_expires_at: Type.Optional(
    Type.String({ format: 'date-time', description: 'After a rotation: when the old key expires.' }),
  ),
})

const revoked = Type.Named('KeyRevoked', { id: Type.String({ description: 'Identifier of the key.' }) })

/** The operations on the keys of one kind of tenant. */
function keysOf<W extends 'organization' | 'project'>(what: W) {
  const param = `${what}_id`
  const path = `/${what}s/:${param}/keys`
  const title = (what === 'organization' ? 'Organization' : 'Project') as Capitalize<W>
  const about = { tag: 'Keys' }
  const scopes: readonly string[] = what === 'organization' ? ORGANIZATION_SCOPES : PROJECT_SCOPES
  const tenantOf = async (query: Query, params: Record<string, string>): Promise<Tenant> =>
    what === 'project'
      ? { organization_id: await requireProject(query, params[param]!), project_id: params[param]! }
      : { organization_id: params[param]!, project_id: null }
  const entry = (verb: string, params: Record<string, string>, id: string) => ({
    action: `key.${verb}`,
    target: `key ${id} of ${what} ${params[param]}`,
  })
  return [
    list({
      ...about,
      id: `list${title}Keys`,
      right: 'setup',
      command: 'keys list',
      path,
      summary: `List the secret keys of ${what === 'organization' ? 'an organization' : 'a project'}`,
      shape: secretKey,
      from: 'secret_keys k',
      at: 'k.created_at',
      key: 'k.id',
      isKey: isUuid,
      where: what === 'organization' ? 'k.organization_id = $1 and k.project_id is null' : 'k.project_id = $1',
      params: [param],
    }),
    change({
      ...about,
      id: `create${title}Key`,
      right: 'keys',
      command: 'keys create',
      method: 'POST',
      path,
      summary: 'Create another secret key',
      description:
        'The other keys stay valid. Without `scope` it is a full key; webhooks of a project are signed with every valid full key. A scoped key never signs webhooks. No key may do more than its maker: full keys, and those that charge, refund or erase, need the role owner.',
      body: Type.Named(`${title}KeyToMake`, {
        name: purpose,
        scope: Type.Optional(
          Type.Array(Type.String({ enum: [...scopes] }), {
            minItems: 1,
            description: `What the key may do. Of a project: ${PROJECT_SCOPES.join(', ')}; of an organization: ${ORGANIZATION_SCOPES.join(', ')}. By default everything.`,
          }),
        ),
        expires_seconds: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: LONGEST_OVERLAP_SECONDS,
            description: 'How long the key is valid; by default until it is revoked.',
          }),
        ),
        rate_limit: Type.Optional(
          Type.String({
            maxLength: 64,
            description:
              'Requests a second with this key, such as `20`, and how many at once, such as `20/100`, if that is less than the limit of the other keys.',
            examples: ['20/100'],
            [DECLARED_ONLY]: { pattern: '^[1-9][0-9]{0,6}(/[1-9][0-9]{0,7})?$' },
          }),
        ),
      }),
      response: keyMade,
      checkInput({ body, access }) {
        const { scope, rate_limit } = body
        requireMaker(access, scope ?? null)
        if (rate_limit !== undefined) readKeyRate(rate_limit)
      },
      async change(query, { params, body }, { seal }) {
        const { name, scope, expires_seconds: seconds, rate_limit } = body
        checkName(name)
        const unique = scope && scopes.filter((one) => scope.includes(one))
        const rate = rate_limit === undefined ? null : readKeyRate(rate_limit)
        const given = { name, scopes: unique ?? null, seconds, rate }
        const result = await createKey(query, seal, await tenantOf(query, params), given)
        const { scopes: may, rate_limit: limit, expires_at } = result
        const after = { name, scopes: may, ...(limit && { rate_limit: limit }), expires_at }
        return { entry: { ...entry('created', params, result.id), after }, result }
      },
    }),
    change({
      ...about,
      id: `rotate${title}Key`,
      right: 'keys',
      command: 'keys rotate',
      method: 'POST',
      path: `${path}/:key_id/rotate`,
      summary: 'Replace a secret key with a new one of the same name',
      body: Type.Named('KeyRotation', {
        overlap_seconds: Type.Optional(
          Type.Integer({
            description: 'How long the old key stays valid.',
            minimum: 0,
            maximum: LONGEST_OVERLAP_SECONDS,
            default: 0,
          }),
        ),
      }),
      response: keyMade,
      async change(query, { params, body, access }, { seal }) {
        const { overlap_seconds = 0 } = body
        const tenant = await tenantOf(query, params)
        const result = await rotateKey(query, seal, tenant, params.key_id, overlap_seconds)
        requireMaker(access, result.scopes)
        const after = { successor: result.id, previous_expires_at: result.previous_expires_at }
        return { entry: { ...entry('rotated', params, params.key_id), after }, result }
      },
    }),
    change({
      ...about,
      id: `revoke${title}Key`,
      right: 'keys',
      command: 'keys revoke',
      method: 'DELETE',
      path: `${path}/:key_id`,
      summary: 'Revoke a secret key',
      response: revoked,
      async change(query, { params }) {
        const name = await revokeKey(query, await tenantOf(query, params), params.key_id)
        return {
          entry: { ...entry('revoked', params, params.key_id), before: { name } },
          result: { id: params.key_id },
        }
      },
    }),
  ] as const
}

export const keys = [
  ...keysOf('organization'),
  ...keysOf('project'),
  list({
    id: 'listOperators',
    right: 'setup',
    command: 'operator list',
    path: '/operators',
    tag: 'Keys',
    summary: 'List operator keys',
    description:
      'They are created and revoked at the command line only, so that a stolen key cannot make further keys.',
    shape: operatorKey,
    from: 'operator_keys k',
    at: 'k.created_at',
    key: 'k.id',
    isKey: isUuid,
  }),
] as const
