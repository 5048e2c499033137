// A key that is revoked while the body of a request arrives: 401 when the body ends, and nothing is done. And while an export is sent. The
// same for a project that no longer accepts payments.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sendWhileRevoked } from '../../conformance/apis.ts'
import { startBilling } from '../../support/billing.ts'
import { line } from '../../support/imports.ts'
import { type Json, ok } from '../../support/server.ts'

const billing = await startBilling()
after(() => billing.stop())
const { server } = billing

let changed: Promise<unknown> = Promise.resolve()
/** The operator's changes one after another: on a busy machine the last of many at once may wait too long for the audit log. */
function change(...call: Parameters<typeof server.admin>): Promise<Json> {
  const made = changed.then(() => ok(server.admin(...call)))
  changed = made.catch(() => {})
  return made
}

/** Sends the headers and the first part of a body, revokes the key, and sends the rest. Returns the status. */
async function revokedBetween(
  path: string,
  owner: { organization: string } | { project: string },
  { scope, header, type }: { scope: string; header: string; type: string },
  halves: [string, string],
): Promise<number> {
  const [kind, id] = Object.entries(owner)[0]!
  const keys = `/${kind}s/${id}/keys`
  const made = await change(keys, { method: 'POST', body: { name: 'writer', scope: [scope] } })
  return sendWhileRevoked(`${server.url}${path}`, { [header]: made.secret_key, 'Content-Type': type }, halves, () =>
    change(`${keys}/${made.id}`, { method: 'DELETE' }),
  )
}

const half = (text: string): [string, string] => [text.slice(0, text.length / 2), text.slice(text.length / 2)]
const lines = (id: string, bytes = 0) =>
  [
    line.profile({ id, integrations: { wide: randomBytes(bytes / 2).toString('hex') } }),
    line.profile({ id: `${id}-2` }),
  ]
    .map((one) => `${JSON.stringify(one)}\n`)
    .join('')

/** More than the memory for one body. */
const many = () => Array.from({ length: 40 }, (_, n) => lines(`many-${n}`, 60_000)).join('')

test('401 and nothing is written when the key is revoked while records arrive', async () => {
  const { id, get } = await server.project()
  const write = (type: string, body: string) =>
    revokedBetween(
      '/public/v1/records',
      { project: id },
      { scope: 'write', header: 'Service-Secret', type },
      half(body),
    )
  const statuses = await Promise.all([
    write('application/json', JSON.stringify({ records: [line.profile({ id: 'json' })] })),
    write('application/x-ndjson', lines('few')),
    write('application/x-ndjson', many()),
  ])
  assert.deepEqual(statuses, [401, 401, 401])
  assert.equal((await get('/profiles')).body.pagination.total, 0)
})

test('no payment is written when the switch of the project for them is turned off while records arrive', async () => {
  const write = async (type: string, body: string) => {
    const { id, key, get } = await server.project()
    const allow = (write_payments: boolean) =>
      change(`/projects/${id}/write-payments`, { method: 'PUT', body: { write_payments } })
    await allow(true)
    const headers = { 'Service-Secret': key, 'Content-Type': type }
    const status = await sendWhileRevoked(`${server.url}/public/v1/records`, headers, half(body), () => allow(false))
    assert.equal((await get('/profiles')).body.pagination.total, 0)
    return status
  }
  const few = [line.profile({ id: 'p' }), line.customer({ external_id: 'ada', profile_id: 'p' })]
  const text = few.map((one) => `${JSON.stringify(one)}\n`).join('')
  const statuses = await Promise.all([
    write('application/json', JSON.stringify({ records: few })),
    write('application/x-ndjson', text),
    write('application/x-ndjson', text + many()),
  ])
  assert.deepEqual(statuses, [400, 400, 503])
})

test('401 and nothing is charged when the key is revoked while the body of a charge arrives', async () => {
  const organization = await billing.organization()
  const externalId = await organization.customer()
  const body = { external_id: externalId, amount: '9.99', currency_code: 'USD', idempotency_key: 'slow' }
  const status = await revokedBetween(
    `/${organization.id}/v1/payment/one_off_charge`,
    { organization: organization.id },
    { scope: 'charge', header: 'service-secret-key', type: 'application/json' },
    half(JSON.stringify(body)),
  )
  assert.equal(status, 401)
  assert.deepEqual(await billing.ledger(), [])
})

test('an export ends without its last line when its key is revoked while it is sent', async () => {
  const project = await server.project()
  // More than the buffers of a connection hold.
  await server.db.query(
    `insert into profiles (project_id, id, created_at, updated_at, email, locale)
     select $1, 'p-' || n, '2026-01-01', '2026-01-01', repeat('x', 300) || n || '@example.com', 'en' from generate_series(1, 40000) n`,
    [project.id],
  )
  const keys = `/projects/${project.id}/keys`
  const { body: made } = await server.admin(keys, { method: 'POST', body: { name: 'reader', scope: ['read'] } })
  const request = get(`${server.url}/public/v1/export`, { headers: { 'Service-Secret': made.secret_key } })
  const [response] = await once(request, 'response')
  assert.equal(response.statusCode, 200)
  await server.admin(`${keys}/${made.id}`, { method: 'DELETE' })
  // A key that was looked up is trusted for a second.
  await sleep(1_100)
  let text = ''
  await assert.rejects(async () => {
    for await (const part of response) text += part
  }, /aborted/)
  assert.doesNotMatch(text, /"horizon"/)
  assert.ok(text.split('\n').length < 40_000)
  await ok(project.get('/export'))
})
