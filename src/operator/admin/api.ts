// The operator's API: authentication, and one route for each operation.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { RIGHTS } from '../../core/tenants/access.ts'
import { ApiError } from '../../lib/errors.ts'
import { noRoute } from '../../lib/http/no-route.ts'
import { problems } from '../../lib/http/problems.ts'
import { sendJson } from '../../lib/http/send-json.ts'
import { Json } from '../../lib/json/json.ts'
import { Type } from '../../lib/shape/schema.ts'
import { shardHook } from './all-shards.ts'
import { actorOf, requireOpen, requireOperator } from './authentication.ts'
import { refuseNul } from './exist.ts'
import { importRoute } from './imports.ts'
import { type Input, isReading, type Operation, perform } from './operation.ts'
import { operations } from './operations.ts'

/** Mounts the operator's API on `scope`, which has the prefix already. */
export async function adminApi(scope: FastifyInstance, app: App): Promise<void> {
  requireOperator(scope, app)
  scope.setNotFoundHandler(noRoute)
  for (const operation of operations) mount(scope, app, operation)
  importRoute(scope, app)
}

function mount(scope: FastifyInstance, app: App, operation: Operation): void {
  const { method, path } = operation
  scope.route({
    method,
    url: path,
    schema: schemaOf(operation) as object,
    onRequest: [shardHook(operation) ?? [], requireOpen(operation)].flat(),
    preValidation: bodyRule(operation),
    handler: async (request, reply) => {
      const input: Input = {
        params: request.params as Input['params'],
        query: request.query as Input['query'],
        body: (request.body ?? {}) as Input['body'],
        access: request.operator!,
        ...(request.exactBody !== undefined && { exact: request.exactBody as Input['body'] }),
      }
      refuseNul(input.params)
      const result = await perform(operation, app, actorOf(request, app), input)
      return result instanceof Json ? sendJson(reply, result.text()) : result
    },
  })
}

/** A body without required properties may be left out, but not be null. An operation without a body refuses one. */
function bodyRule(operation: Operation) {
  const body = 'body' in operation ? operation.body : undefined
  return async (request: FastifyRequest) => {
    if (body && !body.required?.length && request.body === undefined) request.body = {}
    if (!body && request.body !== undefined)
      throw new ApiError(400, 'body_not_allowed', 'This operation takes no body.')
  }
}

/** The OpenAPI description of an operation's route. */
function schemaOf(operation: Operation) {
  const { id, right, tag, summary, description = summary, path, response, command } = operation
  const names = [...path.matchAll(/:([a-z_]+)/g)].map(([, name]) => name!)
  const params = names.map((name) => [name, Type.String({ description: `The ${name.replaceAll('_', ' ')}.` })])
  const body = 'body' in operation ? operation.body : undefined
  const refused = [...(isReading(operation) && !operation.mayRefuse ? [] : [409]), ...(body ? [413, 415] : [])]
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: `${description}\n\nRoles: ${RIGHTS[right].join(', ')}.\n\nAt the command line: \`tundish ${command}\`.`,
    security: [{ operatorKey: [] }],
    ...(names.length > 0 && { params: Type.Object(Object.fromEntries(params)) }),
    querystring: (isReading(operation) ? operation.query : undefined) ?? Type.Object({}),
    ...(body && { body }),
    response: {
      200: { description: 'Done.', content: { 'application/json': { schema: response } } },
      ...problems(400, 401, 403, ...(names.length > 0 ? [404] : []), ...refused),
    },
  }
}
