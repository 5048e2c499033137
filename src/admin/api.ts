// The door of the operator's side: the operator's key and its scope, then one route for each operation.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import type { Actor } from '../audit.ts'
import { ApiError } from '../lib/errors.ts'
import { problems } from '../lib/problems.ts'
import { noRoute, rawHeaders, refuseOtherMethods, sendJson } from '../lib/wire.ts'
import { type Operator, recognizeOperator } from '../operators.ts'
import { importRoute } from './imports.ts'
import { type Input, isReading, type Operation, perform } from './operation.ts'
import { operations } from './operations.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose key opened the operator's door. */
    operator: Operator | undefined
  }
}

/** Mounts the operator's API on `scope`, which has its prefix. */
export async function adminApi(scope: FastifyInstance, app: App): Promise<void> {
  scope.decorateRequest('operator', undefined)
  scope.addHook('onRequest', async (request) => {
    const key = bearer(request)
    request.operator = key === undefined ? undefined : await recognizeOperator(app.db, key)
    if (!request.operator) throw unauthorized()
    request.tenant = `operator ${request.operator.id}`
  })
  scope.setNotFoundHandler(noRoute)
  refuseOtherMethods(scope)
  for (const operation of operations) mount(scope, app, operation)
  importRoute(scope, app)
}

function mount(scope: FastifyInstance, app: App, operation: Operation): void {
  const { method, path } = operation
  scope.route({
    method,
    url: path,
    schema: schemaOf(operation) as object,
    ...(!isReading(operation) && { onRequest: requireWrite }),
    preValidation: bodyRule(operation),
    handler: async (request, reply) => {
      const input: Input = {
        params: request.params as Input['params'],
        query: request.query as Input['query'],
        body: (request.body ?? {}) as Input['body'],
      }
      refuseStrange(input.params)
      const answer = await perform(operation, app, actorOf(request), input)
      return typeof answer === 'string' ? sendJson(reply, answer) : answer
    },
  })
}

/** No body is the same as an empty one where nothing in it is required; where none is known, none is ignored. */
function bodyRule(operation: Operation) {
  const body = 'body' in operation ? operation.body : undefined
  return async (request: FastifyRequest) => {
    if (body && !body.required?.length) request.body ??= {}
    if (!body && request.body !== undefined) throw new ApiError(400, 'This operation takes no body.')
  }
}

/** Refuses a key that may only read. */
export async function requireWrite(request: FastifyRequest): Promise<void> {
  if (request.operator?.scope !== 'write') throw new ApiError(403, 'This operator key may only read.')
}

export function actorOf(request: FastifyRequest): Actor {
  return { kind: 'operator key', id: request.operator!.id, source: request.ip }
}

/** How an operation's route is described. */
export function schemaOf(operation: Operation) {
  const { id, tag, summary, description = summary, path, answer, command } = operation
  const names = [...path.matchAll(/:([a-z_]+)/g)].map(([, name]) => name!)
  const params = names.map((name) => [name, Type.String({ description: `The ${name.replaceAll('_', ' ')}.` })])
  const body = 'body' in operation ? operation.body : undefined
  const refused = isReading(operation) ? [] : [403, 409, ...(body ? [413, 415] : [])]
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: `${description}\n\nAt the command line: \`tundish ${command}\`.`,
    security: [{ operatorKey: [] }],
    ...(names.length > 0 && { params: Type.Object(Object.fromEntries(params)) }),
    querystring: (isReading(operation) ? operation.query : undefined) ?? Type.Object({}),
    ...(body && { body }),
    response: {
      200: { description: 'Done.', content: { 'application/json': { schema: answer } } },
      ...problems(400, 401, ...(names.length > 0 ? [404] : []), ...refused),
    },
  }
}

function bearer(request: FastifyRequest): string | undefined {
  const [header, ...more] = rawHeaders(request.raw, 'authorization')
  return header && more.length === 0 ? /^Bearer ([\x21-\x7e]+)$/i.exec(header.value)?.[1] : undefined
}

function unauthorized(): ApiError {
  const headers = { 'www-authenticate': 'Bearer' }
  return new ApiError(401, 'Unauthorized: send an operator key as "Authorization: Bearer operator_…".', { headers })
}

/** PostgreSQL takes no U+0000; nothing is named with it. */
function refuseStrange(params: Record<string, string>): void {
  if (Object.values(params).some((value) => value.includes('\u0000')))
    throw new ApiError(404, 'There is no such object.')
}
