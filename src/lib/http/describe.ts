// Collects the OpenAPI description of a listener from its routes, and adds what all responses have in common.
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import type { Schema } from '../shape/schema.ts'
import { tundishVersion } from '../version.ts'
import { withComponents } from './document.ts'
import type { ErrorCodes } from './error-codes.ts'
import { DECLARED_ONLY } from './rule-phrases.ts'

export interface Description {
  title: string
  /** Markdown. */
  about: string
  tags: { name: string; description: string }[]
  securitySchemes: Record<string, object>
  errorCodes: ErrorCodes
  /** Requests that the installation sends, by kind of event. */
  webhooks?: Record<string, object>
}

/** Collects the declarations of every route registered on `listener` after this. */
export async function describeRoutes(listener: FastifyInstance, description: Description): Promise<void> {
  const { title, about, tags, securitySchemes, errorCodes, webhooks } = description
  await listener.register(swagger, {
    hideUntagged: true,
    openapi: {
      openapi: '3.1.0',
      info: {
        title,
        version: tundishVersion(),
        description: `${about.trim()}\n\n${codesAsMarkdown(errorCodes)}`,
        license: { name: 'MIT', identifier: 'MIT' } as never,
      },
      servers: [{ url: '/', description: 'This server.' }],
      tags,
      components: { securitySchemes: securitySchemes as never, headers: commonHeaders(errorCodes) },
    },
    transformObject: (document) => {
      if (!('openapiObject' in document)) return document.swaggerObject
      referToHeaders(document.openapiObject)
      describeQueryRules(document.openapiObject)
      describeOptionalBodies(document.openapiObject)
      const whole = { ...document.openapiObject, ...(webhooks && { webhooks }) }
      return withComponents(showDeclared(whole) as never)
    },
  })
}

const ID_HEADER = 'X-Request-Id'
const CODE_HEADER = 'X-Error-Code'

function commonHeaders(errorCodes: ErrorCodes) {
  return {
    [ID_HEADER]: {
      description: "The caller's request id if it sent one, else the server's; the server's log has it.",
      required: true,
      schema: { type: 'string' as const },
    },
    [CODE_HEADER]: {
      description: 'Why the request was refused: a stable code for programs. The introduction lists them.',
      required: true,
      schema: { type: 'string' as const, enum: Object.keys(errorCodes) },
    },
  }
}

interface Document {
  paths?: Record<string, Record<string, { responses?: Record<string, { headers?: object }> }>> | object
}

/** Adds the headers to every response. Routes cannot refer to a component themselves: the plugin copies headers. */
function referToHeaders({ paths = {} }: Document): void {
  for (const path of Object.values(paths)) {
    for (const { responses = {} } of Object.values(path) as { responses?: Record<string, { headers?: object }> }[]) {
      for (const [status, response] of Object.entries(responses)) {
        const names = Number(status) < 400 ? [ID_HEADER] : [ID_HEADER, CODE_HEADER]
        const common = names.map((name) => [name, { $ref: `#/components/headers/${name}` }])
        response.headers = { ...Object.fromEntries(common), ...response.headers }
      }
    }
  }
}

/** A body without required properties may be left out; the plugin declares every body as required. */
function describeOptionalBodies({ paths = {} }: Document): void {
  for (const path of Object.values(paths)) {
    for (const { requestBody } of Object.values(path) as { requestBody?: RequestBody }[]) {
      const schema = requestBody?.content?.['application/json']?.schema
      if (schema?.type === 'object' && !schema.required) requestBody!.required = false
    }
  }
}

interface RequestBody {
  required?: boolean
  content?: Record<string, { schema?: Schema }>
}

/** Adds the rules that apply to every query parameter: text is not empty, numbers are not negative. */
function describeQueryRules({ paths = {} }: Document): void {
  for (const path of Object.values(paths)) {
    for (const { parameters = [] } of Object.values(path) as { parameters?: Parameter[] }[]) {
      for (const { in: place, schema } of parameters) {
        if (place !== 'query') continue
        if (schema.type === 'string' && !schema.enum && !schema.format) schema.minLength ??= 1
        if (schema.type === 'integer') schema.minimum ??= 0
      }
    }
  }
}

interface Parameter {
  in: string
  schema: Schema & { minLength?: number; minimum?: number }
}

/** The document with the rules under `DECLARED_ONLY` merged into their schemas. */
function showDeclared(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(showDeclared)
  if (typeof value !== 'object' || value === null) return value
  const { [DECLARED_ONLY]: declared, ...rest } = value as Schema
  const shown = Object.entries(rest).map(([key, inner]) => [key, showDeclared(inner)])
  return { ...Object.fromEntries(shown), ...(declared as object | undefined) }
}

function codesAsMarkdown(errorCodes: ErrorCodes): string {
  const rows = Object.entries(errorCodes).map(
    ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`,
  )
  return `## Error codes\n\nEvery error response has one of these codes in the header \`${CODE_HEADER}\`.\n\n| code | status | meaning |\n|---|---|---|\n${rows.join('\n')}`
}
