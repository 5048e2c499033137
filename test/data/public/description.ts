// The OpenAPI document: its operations, and a check of real responses against it.
import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { ApiResponse, Json, TestServer } from '../../support/server.ts'

export interface Operation {
  /** As in the document: `/public/v1/funnels/{id}`. */
  path: string
  method: string
  operationId: string
  parameters: { in: string; name: string; schema: Json }[]
  responses: Record<string, Json>
}

export interface Description {
  document: Json
  operations: Operation[]
  /** Fails unless the document declares this status for the operation, and the body is what it declares. */
  check(operation: Operation, response: ApiResponse): void
}

export async function describeServer(server: TestServer): Promise<Description> {
  const { status, body: document } = await server.call('/openapi.json')
  assert.equal(status, 200)
  const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }))
  ajv.addSchema({ ...document, $id: 'document' })
  const operations: Operation[] = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operationId: operation.operationId,
      parameters: operation.parameters ?? [],
      responses: operation.responses,
    })),
  )
  return {
    document,
    operations,
    check({ path, method, responses }, response) {
      const what = `${method} ${path} ${response.status}`
      const declared = responses[response.status]
      assert.ok(declared, `${what} is not declared: ${response.text}`)
      const pointer = [path, method.toLowerCase(), 'responses', String(response.status)].map(escapePointer).join('/')
      const isLines = declared.content?.['application/x-ndjson'] !== undefined
      const type = isLines ? 'application~1x-ndjson' : 'application~1json'
      const validate = ajv.compile({ $ref: `document#/paths/${pointer}/content/${type}/schema` })
      const bodies = isLines
        ? response.text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line))
        : [response.body]
      for (const body of bodies)
        assert.ok(validate(body), `${what}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`)
    },
  }
}

const escapePointer = (name: string) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
