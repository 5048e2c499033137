// Every rule that a description declares for a query parameter is enforced, and the reader's own rules are declared.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type AdminResponse, startAdmin } from '../../support/admin.ts'
import { startBilling } from '../../support/billing.ts'
import { openEvents } from '../../support/events.ts'
import type { Json } from '../../support/server.ts'

interface Parameter {
  name: string
  in: string
  required?: boolean
  schema: Record<string, unknown>
}

interface Case {
  path: string
  query: string
  rule: string
}

/** Queries that break one declared rule each, on every GET of a description. */
function* broken(document: { paths: Record<string, Record<string, { parameters?: Parameter[] }>> }): Iterable<Case> {
  for (const [template, { get }] of Object.entries(document.paths)) {
    const path = template.replace(/\{[^}]+\}/g, 'x')
    const parameters = get?.parameters?.filter((one) => one.in === 'query') ?? []
    const needed = parameters.filter(({ required }) => required).map(({ name }) => `${name}=x`)
    for (const { name, required, schema } of parameters) {
      const others = needed.filter((one) => one !== `${name}=x`)
      if (required) yield { path, rule: `${name} is required`, query: others.join('&') }
      for (const [rule, value] of violations(schema)) {
        yield { path, rule: `${name} ${rule}`, query: [...others, `${name}=${encodeURIComponent(value)}`].join('&') }
      }
    }
  }
}

function* violations(schema: Record<string, unknown>): Iterable<[string, string]> {
  const { type, minimum, maximum, minLength, maxLength, pattern } = schema
  if (typeof minLength === 'number') yield ['minLength', 'é'.repeat(minLength - 1)]
  if (typeof maxLength === 'number') yield ['maxLength', 'é'.repeat(maxLength + 1)]
  if (typeof minimum === 'number') yield ['minimum', String(minimum - 1)]
  if (typeof maximum === 'number') yield ['maximum', String(maximum + 1)]
  if (pattern !== undefined) yield ['pattern', '\u0001']
  if (schema.enum) yield ['enum', 'none of them']
  if (schema.format) yield ['format', 'x']
  if (type === 'integer') yield ['integer', '1.5']
  if (type === 'boolean') yield ['boolean', 'yes']
}

/** A parameter whose text has no rule at all would let the empty text pass, which no reader of ours does. */
function undeclared(document: { paths: Record<string, Record<string, { parameters?: Parameter[] }>> }): string[] {
  return Object.entries(document.paths).flatMap(([path, { get }]) =>
    (get?.parameters ?? [])
      .filter((one) => one.in === 'query' && [...violations(one.schema)].length === 0)
      .map(({ name }) => `${path} ${name}`),
  )
}

const billing = await startBilling()
const { server } = billing
const shop = await billing.organization()
const events = await openEvents()
const admin = await startAdmin(events)
after(async () => {
  await admin.stop()
  await events.close()
  await billing.stop()
})

const CODES = ['parameter_required', 'invalid_parameter']

test('400 for every declared rule of every query parameter of the data API and the billing API', async () => {
  const { body: document } = await server.call('/openapi.json')
  assert.deepEqual(undeclared(document), [])
  const cases = [...broken(document)]
  assert.ok(cases.length > 40, String(cases.length))
  for (const { path, query, rule } of cases) {
    const url = `${path.replace(/^\/x\//, `/${shop.id}/`)}?${query}`
    const { status, headers } = await server.call(url, {
      key: shop.projectKey,
      headers: ['service-secret-key', shop.key],
    })
    assert.deepEqual([status, CODES.includes(String(headers['x-error-code']))], [400, true], `${path}: ${rule}`)
  }
})

test('400 for every declared rule of every query parameter of the operator’s API', async () => {
  const document = (await (await fetch(`${admin.adminUrl}/openapi.json`)).json()) as Json
  assert.deepEqual(undeclared(document), [])
  const cases = [...broken(document)]
  assert.ok(cases.length > 30, String(cases.length))
  for (const { path, query, rule } of cases) {
    const url = `${path.replace('/admin/v1', '')}?${query}`
    const { status, headers }: AdminResponse = await admin.call('GET', url)
    assert.deepEqual([status, CODES.includes(String(headers.get('x-error-code')))], [400, true], `${path}: ${rule}`)
  }
})

test('GET /admin/v1/search says what is missing or too long', async () => {
  const message = async (query: string) => (await admin.call('GET', `/search${query}`)).body.message
  assert.equal(await message(''), 'The query parameter q is required.')
  assert.match(await message(`?q=${'x'.repeat(321)}`), /^q must have at most 320 characters, got "x{63}…"\.$/)
  assert.deepEqual((await admin.call('GET', `/search?q=${encodeURIComponent('é'.repeat(320))}`)).body, { results: [] })
})

test('an amount is declared as it is judged: above 0, and a plain decimal', async () => {
  const { body: document } = await server.call('/openapi.json')
  const { properties } = document.components.schemas.OneOffChargeIn
  const [number, string] = properties.amount.anyOf
  assert.deepEqual([number.type, number.exclusiveMinimum, string.type], ['number', 0, 'string'])
  assert.match('999999999999999.123456789', new RegExp(string.pattern))
  assert.ok(!JSON.stringify(document).includes('x-declared'))
  for (const field of ['external_id', 'idempotency_key']) {
    const pattern = new RegExp(properties[field].pattern, 'u')
    assert.deepEqual(
      ['ä b', '\u0000', 'a\u007f', '\u009f'].map((text) => pattern.test(text)),
      [true, false, false, false],
    )
  }
})
