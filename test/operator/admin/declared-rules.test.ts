// The rules of bodies and parameters: what the description declares is enforced, and what is enforced is declared.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020, type Schema } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { unconnectedListener } from '../../../scripts/openapi.ts'
import { operations } from '../../../src/operator/admin/operations.ts'
import { openAdmin } from '../../support/admin.ts'
import { ORGANIZATION, PROJECT } from '../../support/events.ts'
import type { Json } from '../../support/server.ts'

const ajv = addFormats.default(new Ajv2020({ strict: false }))
ajv.addFormat('int64', true).addFormat('double', true)
const { admin } = await openAdmin()
const listener = await unconnectedListener('operator')
const description = JSON.parse(JSON.stringify(listener.swagger()))
ajv.addSchema({ ...description, $id: 'description' })
await listener.close()

const described = (method: string, path: string) =>
  description.paths[`/admin/v1${path.replace(/:(\w+)/g, '{$1}')}`][method.toLowerCase()]

const pathOf = (path: string) =>
  path
    .replace(':organization_id', ORGANIZATION)
    .replace(':project_id', PROJECT)
    .replace(/:(\w+)/g, 'none')

test('400 for a body that is null, at each operation with a body; a body is required where it has a required property', async () => {
  let tried = 0
  for (const operation of operations) {
    if (!('body' in operation) || !operation.body) continue
    const { method, path } = operation
    const { status, body } = await admin.call(method, pathOf(path), null)
    assert.equal(status, 400, path)
    assert.match(body.message, /^(A body is required: a JSON|The body must be an) object/, path)
    assert.equal(described(method, path).requestBody.required ?? false, Boolean(operation.body.required?.length), path)
    tried += 1
  }
  assert.ok(tried >= 15)
})

const ORGANIZATION_PATH = '/organizations/:organization_id'
// Method, path, a body that passes, and what is wrong in one of its properties.
const BODIES: [string, string, Json, Json[]][] = [
  ['POST', '/organizations', { id: 'declared', name: 'Ada & Co' }, [{ name: 'a\u0007' }, { name: ' ' }, { id: '-a' }]],
  ['POST', `${ORGANIZATION_PATH}/projects`, { id: 'declared' }, [{ id: 'a b' }, { name: '\u009a]' }]],
  ['POST', '/projects/:project_id/keys', { name: 'second' }, [{ name: '\u0085' }]],
  ['PUT', '/projects/:project_id/rate-limit', { rate_limit: '200/1000' }, [{ rate_limit: '000' }, { rate_limit: '' }]],
  ['PUT', `${ORGANIZATION_PATH}/rate-limit`, { rate_limit: 'off' }, [{ rate_limit: '1/0' }]],
  [
    'PATCH',
    ORGANIZATION_PATH,
    { one_off_charge_max_amount: { '*': 5, JPY: '90000' } },
    [
      { one_off_charge_max_amount: { '*': '' } },
      { one_off_charge_max_amount: { '*': -1 } },
      { one_off_charge_max_amount: { dollars: 5 } },
    ],
  ],
  ['POST', '/projects/:project_id/webhooks', { url: 'http://127.0.0.1:9/' }, [{ url: '0' }, { url: 'ftp://a.test/' }]],
  [
    'PUT',
    `${ORGANIZATION_PATH}/merchant-accounts/simulator/m`,
    { currencies: ['eur', 'USD'] },
    [{ currencies: ['000'] }, { currencies: ['uſd'] }],
  ],
]

test('200 for bodies that match their schema, 400 for those that do not', async () => {
  for (const [method, path, good, wrong] of BODIES) {
    const schema = described(method, path.replace('/simulator/m', '/:psp/:psp_merchant_id')).requestBody.content[
      'application/json'
    ].schema as Schema & { $ref: string }
    const isValid = ajv.compile({ $ref: `description${schema.$ref}` })
    assert.ok(isValid(good), `${path}: ${JSON.stringify(isValid.errors)}`)
    assert.equal((await admin.call(method, pathOf(path), good)).status, 200, path)
    for (const change of wrong) {
      const body: object = { ...(good as object), ...(change as object) }
      assert.ok(!isValid(body), `${path} declares ${JSON.stringify(body)}`)
      assert.equal((await admin.call(method, pathOf(path), body)).status, 400, `${path} ${JSON.stringify(body)}`)
    }
  }
})

const FIGURES = '/projects/:project_id/figures'
const FINANCE = `${ORGANIZATION_PATH}/finance`
// Path, parameter, other parameters, values that pass, values that do not.
const PARAMETERS: [string, string, string, string[], string[]][] = [
  [FIGURES, 'metric', '', ['revenue', 'revenue,refunds'], ['0', 'revenue;refunds', 'Revenue']],
  [FIGURES, 'by', 'metric=revenue', ['day', 'country', 'day,country', 'country,month'], ['0', 'day,week', 'a,day']],
  [FIGURES, 'from', 'metric=revenue&to=2026-06-01', ['2026-05-01'], ['0000-00-00', '2026-13-01', '2026-5-1']],
  [FINANCE, 'month', '', ['2026-10'], ['0', '2026-13', '2026-10-01']],
  [FINANCE, 'to', 'from=2026-10-01', ['2026-10-02', '2026-10-01'], ['0', '2026-10-32', '2026-10-01T12:00:00Z']],
]

test('200 for query parameters that match their schema, 400 for those that do not', async () => {
  for (const [path, name, others, good, wrong] of PARAMETERS) {
    const { schema } = described('GET', path).parameters.find((one: Json) => one.name === name)
    const isValid = ajv.compile(schema)
    for (const [values, status] of [
      [good, 200],
      [wrong, 400],
    ] as const) {
      for (const value of values) {
        assert.equal(isValid(value), status === 200, `${path} declares ${name}=${value}`)
        const query = `${others && `${others}&`}${name}=${encodeURIComponent(value)}`
        assert.equal((await admin.call('GET', `${pathOf(path)}?${query}`)).status, status, `${path}?${query}`)
      }
    }
  }
})
