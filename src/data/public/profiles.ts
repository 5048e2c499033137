// Profiles: the list with its filters, one profile by id, and the erasure of persons.
import type { FastifyInstance } from 'fastify'
import { inAuditTurn } from '../../core/audit/turns.ts'
import { erase } from '../../core/erasure/erasure.ts'
import { equals, listOf } from '../../core/lists/list.ts'
import { profile, profileRecord } from '../../core/records/profile.ts'
import { ApiError } from '../../lib/errors.ts'
import { callerOf } from '../../lib/http/client-address.ts'
import { problem, problemResponse, problems } from '../../lib/http/problems.ts'
import { Type } from '../../lib/shape/schema.ts'
import { foldQueriedEmail } from '../../lib/text.ts'
import type { PublicContext } from './context.ts'
import { describe, detailRoute, listRoute, success } from './resource.ts'

const list = listOf(profileRecord, {
  shape: profile,
  alias: 'p',
  maxLimit: 500,
  filters: {
    email: {
      schema: Type.String({ description: 'Only profiles with this e-mail address, case-insensitive.' }),
      where: (value) => `p.email_folded = ${value}`,
      param: foldQueriedEmail,
      selective: true,
    },
    funnel_id: equals('p.funnel_id', 'Only profiles that came through this funnel first.', { counter: 'funnel_id' }),
  },
})

const erasureRequest = Type.Named('ErasureRequest', {
  profile_ids: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Identifiers of the profiles; duplicates count once.',
    minItems: 1,
    maxItems: 1000,
    examples: [['pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A']],
  }),
})

const erasureResult = Type.Object(
  {
    message: Type.String({
      description: 'Says how many profiles were anonymized.',
      examples: ['2 profiles anonymized.'],
    }),
  },
  { title: 'ErasureAnswer' },
)

const SAME_PERSON = {
  'X-Same-Person': {
    type: 'string',
    description:
      'Ids of other profiles of the project with the e-mail address or the customer of an erased one, at most 50 for each and 3,400 bytes in all: they are not erased. Absent if there are none.',
    example: 'pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8B, pro_01JZ8Q6V9M3T0R5K7W2X4Y6Z8C',
  },
  'X-Same-Person-Count': {
    type: 'integer',
    description:
      'How many there are. If it is more than `X-Same-Person` names, the receipts of the erased profiles name the others.',
    example: 2,
  },
}

// All of one profile fit. A client or a proxy that gets more fails, though the erasure is done: nginx reads 4 KiB of headers,
// Node 16 KiB.
const MOST_NAMED_BYTES = 3400

/** Their ids as the value of a header, as many as fit. */
function named(twins: string[]): string {
  const value = twins.join(', ')
  return value.length <= MOST_NAMED_BYTES ? value : value.slice(0, value.lastIndexOf(', ', MOST_NAMED_BYTES))
}

const profilesNotFound = Type.Object(
  {
    ...problem.properties,
    not_found: Type.Array(Type.String(), {
      description: 'The identifiers that are not profiles of this project, in the order of the request.',
    }),
  },
  { title: 'ProfilesNotFound' },
)

export function profiles(app: FastifyInstance, context: PublicContext): void {
  const { reads } = context
  listRoute(app, reads, '/profiles', list, {
    operationId: 'listProfiles',
    tag: 'Profiles',
    summary: 'List profiles',
    description:
      'Newest first. With an `updated_at` filter: oldest change first, for a sync. Filters combine with AND.',
  })
  detailRoute(app, reads, '/profiles/:id', list, {
    operationId: 'getProfile',
    tag: 'Profiles',
    summary: 'Get a profile',
  })
  const schema = {
    ...describe({
      operationId: 'anonymizeProfiles',
      tag: 'Profiles',
      summary: 'Erase personal data',
      description:
        'Permanently removes the personal data of the listed profiles and of all their sessions, all or nothing. ' +
        'Transactions and subscriptions are kept. A profile that was anonymized before is accepted, too. ' +
        'Other profiles of the same person are not erased; `X-Same-Person` names them.',
    }),
    querystring: Type.Object({}),
    body: erasureRequest,
    response: {
      200: success('The profiles are anonymized.', erasureResult, SAME_PERSON),
      ...problems(400, 401, 403, 413, 415),
      404: problemResponse(404, profilesNotFound),
    },
  }
  app.post<{ Body: { profile_ids: string[] } }>(
    '/profiles/anonymize',
    { schema, config: { scope: 'erase' } },
    async ({ body, projectId, raw }, reply) => {
      const ids = [...new Set(body.profile_ids)]
      // Authentication returns the project of a key, not which of its keys it is.
      const source = callerOf(raw, context.trustedProxies)
      const actor = { kind: 'project key', id: projectId, source } as const
      const { missing, twins } = await inAuditTurn(context.db, 'erasure', projectId, () =>
        erase(context, actor, projectId, ids),
      )
      if (missing.length > 0) throw notFoundIds(missing)
      if (twins.length > 0) reply.headers({ 'x-same-person': named(twins), 'x-same-person-count': twins.length })
      return { message: ids.length === 1 ? '1 profile anonymized.' : `${ids.length} profiles anonymized.` }
    },
  )
}

function notFoundIds(ids: string[]): ApiError {
  const message = `${ids.length} of the profiles ${ids.length === 1 ? 'does' : 'do'} not exist in this project: nothing was changed.`
  return new ApiError(404, 'profiles_not_found', message, { extra: { not_found: ids } })
}
