// What client generators need of the description: named models, unions they can read, number formats, examples that hold.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { FastifyInstance } from 'fastify'
import { unconnectedListener } from '../../../scripts/openapi.ts'
import { eventTypes } from '../../../src/core/events/catalogue.ts'
import type { Json } from '../../support/server.ts'

for (const side of ['public', 'operator'] as const) {
  describe(`the schemas of the ${side} listener`, () => {
    let listener: FastifyInstance
    let document: Json
    before(async () => {
      listener = await unconnectedListener(side)
      document = JSON.parse(JSON.stringify(listener.swagger()))
    })
    after(() => listener.close())

    const every = (check: (schema: Json, at: string) => string | false) => {
      const found = [...schemasOf(document, '')]
      assert.ok(found.length > 200)
      assert.deepEqual(
        found.flatMap(([schema, at]) => {
          const wrong = check(schema, at)
          return wrong ? `${at}: ${wrong}` : []
        }),
        [],
      )
    }

    // Generators leave out components that only webhooks use, so these are written in place.
    test('every object with properties is a named component, except bodies of webhooks', () => {
      const mayLackName = (at: string) => /^\/components\/schemas\/\w+$|^\/webhooks\//.test(at)
      every((schema, at) => schema.properties !== undefined && !mayLackName(at) && 'has no name')
    })

    test('no union as a list of types, apart from one type or null', () => {
      every(
        ({ type }) => Array.isArray(type) && type.filter((one) => one !== 'null').length > 1 && JSON.stringify(type),
      )
    })

    test('no null and no empty text in an enum', () => {
      every(({ enum: values }) => values?.some((one: unknown) => one === null || one === '') && JSON.stringify(values))
    })

    test('every number has a format', () => {
      const isNumber = ({ type }: Json) => [type].flat().some((one) => one === 'integer' || one === 'number')
      every((schema) => isNumber(schema) && !['int64', 'double'].includes(schema.format) && 'has no format')
    })

    test('every example is one', () => {
      const ajv = addFormats.default(new Ajv2020({ strict: false }))
      ajv.addFormat('int64', true).addFormat('double', true)
      ajv.addSchema({ ...document, $id: 'document' })
      let tried = 0
      every((schema, at) => {
        const validate = schema.examples && ajv.compile({ $ref: `document#${at}` })
        const wrong = schema.examples?.find((example: unknown) => !validate(example))
        tried += schema.examples?.length ?? 0
        return wrong !== undefined && JSON.stringify(wrong)
      })
      assert.ok(tried > 20)
    })

    test('operation ids are one short word each', () => {
      const operations = Object.values<Json>(document.paths).flatMap((path) => Object.values<Json>(path))
      const names = operations.map(({ operationId }) => operationId)
      assert.deepEqual(
        names.filter((name) => !/^[a-z][A-Za-z]{4,30}$/.test(name)),
        [],
      )
      assert.equal(new Set(names).size, names.length)
    })

    if (side === 'public') {
      test('webhooks has one schema for each kind of event', () => {
        assert.deepEqual(Object.keys(document.webhooks).sort(), [...eventTypes].sort())
        for (const type of eventTypes) {
          const { schema } = document.webhooks[type].post.requestBody.content['application/json']
          assert.deepEqual(schema.properties.type.enum, [type])
        }
      })
    }
  })
}

/** Every schema of the document with its JSON pointer. */
function* schemasOf(node: Json, at: string, isSchema = false): Iterable<[schema: Json, at: string]> {
  if (typeof node !== 'object' || node === null) return
  if (isSchema && !Array.isArray(node)) yield [node, at]
  for (const [key, value] of Object.entries<Json>(node)) {
    // Examples hold values, and an enum too.
    if (key === 'examples' || key === 'enum' || key === 'default') continue
    const isList = at === '/components/schemas' || at.endsWith('/properties') || at.endsWith('/anyOf')
    const leads = ['schema', 'items', 'additionalProperties'].includes(key) || isList
    yield* schemasOf(value, `${at}/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`, leads)
  }
}
