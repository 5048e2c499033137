// How the routes of the billing API are described.
import type { Audit } from '../../core/audit/audit.ts'
import type { TrustedProxies } from '../../lib/http/client-address.ts'
import { problem, problemResponse, problems } from '../../lib/http/problems.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import type { BillingContext } from './context.ts'

/** What the routes of movements need. */
export interface MountContext extends BillingContext {
  audit: Audit
  trustedProxies: TrustedProxies
}

/** The types of a route that takes a body. */
export interface Post<Body> {
  Body: Body
}

interface Description {
  operationId: string
  summary: string
  description: string
}

export function describe(about: Description) {
  return {
    ...about,
    tags: ['Billing'],
    security: [{ organizationKey: [] }],
    params: Type.Object({ org_id: Type.String({ description: 'The id of the organization.', examples: ['demo'] }) }),
    querystring: Type.Object({}),
  }
}

interface Refusals {
  /** The codes that a 400 may have in its body. */
  coded?: readonly string[]
  /** The title of such a body, and what else is in it. */
  problem?: { title: string; properties?: Record<string, Schema> }
}

/** The responses of a route; `schema` is of the successful one. */
export function ok(description: string, schema: Schema, { coded, problem: about }: Refusals = {}) {
  const success = { description, content: { 'application/json': { schema } } }
  const refusal = coded && { 400: problemResponse(400, codedProblem(coded, about)) }
  return { response: { 200: success, ...problems(400, 401, 403, 413, 415), ...refusal } }
}

function codedProblem(codes: readonly string[], about: Refusals['problem']): Schema {
  return Type.Object(
    {
      ...problem.properties,
      code: Type.Optional({
        type: 'string',
        enum: codes,
        description: 'A code for programs, only for these refusals. `X-Error-Code` has one for all.',
      }),
      ...about?.properties,
    },
    { title: about?.title ?? (codes.length > 1 ? 'ChargeProblem' : 'RefundProblem') },
  )
}

/** Where an organization's reads and refunds take their turns. A project may have the same id, and another owner. */
export const lineOf = (organizationId: string) => `organization ${organizationId}`
