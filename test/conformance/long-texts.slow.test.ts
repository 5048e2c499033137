// Every text that comes in has a limit: at every operation of both listeners, a longer or unusual one changes nothing.
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { createOperator } from '../../src/core/tenants/operator-keys.ts'
import { startBilling } from '../support/billing.ts'
import type { Json } from '../support/server.ts'
import { callerOf, type MatrixOperation, operationsOf } from './apis.ts'
import { contentsOf, makeTenant } from './tenant-pair.ts'
import { RULES } from './tenant-rules.ts'

// No kind of text may have more than 64 KiB; the path and the query have the limit of the request line.
const LONG = 'é'.repeat(35_000)
const LONG_IN_URL = 'é'.repeat(1_000)
// What a database refuses to store, or cannot read as a number.
const UNUSUAL = ['a\u0000b', '\ud800', '9'.repeat(400)]

const billing = await startBilling({ WEBHOOK_ALLOW_PRIVATE: 'true', UNAUTHORIZED_RATE: '1000000' }, { worker: false })
after(() => billing.stop())
const ours = await makeTenant(billing, 'mine')
const operator = (await billing.db.tx((query) => createOperator(query, { name: 'writer', scope: 'write' }))).key
const send = callerOf(billing.server)
const keys = { open: undefined, data: ours.projectKey, billing: ours.organizationKey, operator }
const documents = {
  public: (await (await fetch(`${billing.server.url}/openapi.json`)).json()) as Json,
  operator: (await (await fetch(`${billing.server.adminUrl}/openapi.json`)).json()) as Json,
}

const operations = (await operationsOf(billing.server)).filter(({ id }) => !RULES[id]?.open)
const described = ({ api, method, path }: MatrixOperation): Json =>
  documents[api.listener].paths[path][method.toLowerCase()]

/** The names of the tenant's objects in the path, except for the parameter that is given. */
const pathOf = (path: string, given?: { name: string; value: string }) =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (name === given?.name) return encodeURIComponent(given.value)
    const names: Record<string, string> = {
      ...{ org_id: ours.organization, organization_id: ours.organization, project_id: ours.project },
      ...{ order_id: ours.order, event_id: ours.event, webhook_id: ours.webhook },
    }
    return names[name] ?? ours.mark
  })

// Lists the ids that do not exist, whatever they are.
const REPEATS = new Set(['anonymizeProfiles'])

/** The responses that are not as they must be, of one test. */
let wrong: string[] = []
beforeEach(() => {
  wrong = []
})
afterEach(() => assert.deepEqual(wrong, []))

const queryOf = ({ id }: MatrixOperation) => RULES[id]?.query?.(ours) ?? {}

async function refuses(
  operation: MatrixOperation,
  path: string,
  body: object | undefined,
  what: string,
  statuses: number[],
) {
  const { api, method, id } = operation
  const { status, text } = await send({ api, method, path, key: keys[api.name], body })
  if (!statuses.includes(status)) wrong.push(`${id} with ${what}: ${status} ${text.slice(0, 200)}`)
  if (text.length > 5_000 && status !== 200 && !REPEATS.has(id))
    wrong.push(`${id} with ${what} repeats the text: ${text.slice(0, 200)}`)
}

/** The names of the properties of a body that may be texts, or hold texts. */
function textsOf(operation: MatrixOperation): [string, (text: string) => unknown][] {
  const document = documents[operation.api.listener]
  const resolve = (schema: Json): Json =>
    schema?.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)] : schema
  const schema = resolve(described(operation).requestBody?.content?.['application/json']?.schema)
  return Object.entries((schema?.properties ?? {}) as Record<string, Json>).flatMap(([name, property]) => {
    const kinds = [property, ...(property.anyOf ?? [])].map(resolve)
    const types = kinds.flatMap(({ type }) => type ?? [])
    const made: [string, (text: string) => unknown][] = []
    if (types.includes('string') || types.length === 0) made.push([name, (text) => text])
    if (types.includes('array')) made.push([name, (text) => [text]])
    if (types.includes('object')) made.push([name, (text) => ({ [text]: 1 })], [name, (text) => ({ a: text })])
    return made
  })
}

test('a text of 70,000 bytes in a property of a body is a 400, and changes nothing', async () => {
  const before = await contentsOf(billing.db, ours)
  let tried = 0
  for (const operation of operations) {
    const good = RULES[operation.id]?.body?.(ours, ours)
    if (typeof good === 'string') continue
    const search = new URLSearchParams(queryOf(operation)).toString()
    for (const [name, make] of textsOf(operation)) {
      await refuses(
        operation,
        `${pathOf(operation.path)}?${search}`,
        { ...good, [name]: make(LONG) },
        name,
        REPEATS.has(operation.id) ? [404] : [400, 413],
      )
      tried += 1
    }
  }
  assert.ok(tried > 60, `${tried}`)
  assert.equal(await contentsOf(billing.db, ours), before)
})

test('a long text in the query or the path is refused or finds nothing', async () => {
  const before = await contentsOf(billing.db, ours)
  let tried = 0
  for (const operation of operations) {
    const good = RULES[operation.id]?.body?.(ours, ours)
    if (typeof good === 'string') continue
    for (const { name, in: place } of (described(operation).parameters ?? []) as { name: string; in: string }[]) {
      const search = new URLSearchParams({ ...queryOf(operation), ...(place === 'query' && { [name]: LONG_IN_URL }) })
      const given = place === 'path' ? { name, value: LONG_IN_URL } : undefined
      const path = `${pathOf(operation.path, given)}?${search}`
      const isList = operation.method === 'GET'
      const statuses = place === 'query' || isList ? [200, 400, 401, 404] : [400, 401, 404]
      await refuses(operation, path, good, `${place} ${name}`, statuses)
      tried += 1
    }
  }
  assert.ok(tried > 100, `${tried}`)
  assert.equal(await contentsOf(billing.db, ours), before)
})

test('an unusual text anywhere is never an error of the server', async () => {
  const possible = [200, 400, 401, 403, 404, 405, 409, 413, 422]
  for (const operation of operations) {
    const good = RULES[operation.id]?.body?.(ours, ours)
    if (typeof good === 'string') continue
    const search = new URLSearchParams(queryOf(operation))
    for (const text of UNUSUAL) {
      for (const [name, make] of textsOf(operation))
        await refuses(operation, `${pathOf(operation.path)}?${search}`, { ...good, [name]: make(text) }, name, possible)
      for (const { name, in: place } of (described(operation).parameters ?? []) as { name: string; in: string }[]) {
        // A lone surrogate cannot be written in a URL.
        if (!text.isWellFormed()) continue
        const query = new URLSearchParams({ ...queryOf(operation), ...(place === 'query' && { [name]: text }) })
        const path = `${pathOf(operation.path, place === 'path' ? { name, value: text } : undefined)}?${query}`
        if (operation.method === 'GET') await refuses(operation, path, undefined, `${place} ${name}`, possible)
      }
    }
  }
})
