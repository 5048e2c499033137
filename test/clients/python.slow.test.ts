// The Python client against a server: records, lists, changes, charges, credits and webhooks. It needs a Python with httpx and
// standardwebhooks: PYTHON names one.
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { addKey } from '../../src/core/tenants/tenants.ts'
import { startBilling } from '../support/billing.ts'
import { withCredits } from '../support/credits.ts'
import { titled } from '../support/titled.ts'

const PYTHON = process.env['PYTHON'] ?? 'python3'
const needed = 'import sys, httpx, standardwebhooks; assert sys.version_info >= (3, 10)'
const missing = spawnSync(PYTHON, ['-c', needed]).status !== 0
const CLIENT = join(import.meta.dirname, '../../clients/python')

const billing = await startBilling()
after(() => billing.stop())

const faults =
  'the Python client leaves out what a whole call is refused for, repeats what broke off, and survives a fork'
test(titled(faults, missing ? `${PYTHON} has no httpx with standardwebhooks` : undefined), {
  skip: missing,
}, async () => {
  const project = await billing.server.project()
  const env = {
    PATH: process.env['PATH'],
    PYTHONPATH: CLIENT,
    PYTHONDONTWRITEBYTECODE: '1',
    URL: billing.server.url,
    KEY: project.key,
  }
  const { stdout } = await promisify(execFile)(PYTHON, [join(import.meta.dirname, 'python-faults.py')], { env })
  const foreign = [200, 'The response is not from Tundish, or broke off: check the url.']
  assert.deepEqual(JSON.parse(stdout), {
    bad: [7, 4, [1, 3, 5], ['invalid_json', 'invalid_json', 'body_too_large']],
    exact: '{"n":1.50,"big":1000,"text":"\\"1.50\\""},"anonymized_at":null}',
    garbled: ['ada', 1, ['now'], 1],
    pickled: Array(3).fill([true, true]),
    firewall: [
      8,
      [
        [2, 'refused_by_proxy'],
        [7, 'refused_by_proxy'],
      ],
    ],
    closed: [
      [403, 'The server responded with 403.'],
      [403, 'The server responded with 403.'],
    ],
    moody: 1,
    altered: 400,
    charge: ['succeeded', 2],
    settles: ['processing', 'succeeded', [1, 2, 4, 8, 15], Array(7).fill('one')],
    report: [true, ['1970-01-01T00:00:00Z', '2026-01-31T09:08:19Z', '2026-01-31T09:16:39Z']],
    foreign: [...foreign, foreign, foreign],
    html: foreign,
    moved: [302, 'The server redirects: give the client its final address.'],
    waits: [7, 30, 3600],
    breaks: true,
    changes: ['2026-01-31T09:00:00Z', 4, [3, 1, 1]],
    forged: 3,
    secret: ['a', ...Array(6).fill('Give verify_webhook the whole webhook secret, as it was printed: whsec_….')],
    misuse: [
      'The key has a character that no key has: give the client the whole key, as it was printed.',
      'The key has a character that no key has: give the client the whole key, as it was printed.',
      'Give anonymize a list of ids.',
      'Give verify_webhook the raw body, as text or bytes, and not what a JSON parser made of it.',
    ],
    line: 'p0',
    address: 'Give the client the url of the server, such as https://tundish.example.com.',
    fork: [0, 0, 0],
  })
})

const title = 'the Python client writes, reads, charges, spends and verifies'
test(titled(title, missing ? `${PYTHON} has no httpx with standardwebhooks` : undefined), {
  skip: missing,
}, async () => {
  const { server } = billing
  const organization = await billing.organization()
  const shop = await withCredits(server.db, organization)
  const customer = await shop.customer()
  assert.equal((await shop.credits('grant', { external_id: customer, amount: '100' })).status, 200)
  const project = await server.project()
  const [row] = await server.db.query('select organization_id as id from projects where id = $1', [project.id])
  const tenant = { organization_id: row!.id!, project_id: project.id }
  const writer = await addKey(server.db.query, server.app.seal, tenant, { name: 'writer', scopes: ['write'] })
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  const [at, body] = [new Date(), JSON.stringify({ type: 'session.completed' })]
  const headers = {
    'Webhook-Id': 'msg_1',
    'Webhook-Timestamp': String(Math.floor(at.getTime() / 1000)),
    'Webhook-Signature': new Webhook(secret).sign('msg_1', at, body),
  }
  const env = {
    PATH: process.env['PATH'],
    PYTHONPATH: CLIENT,
    PYTHONDONTWRITEBYTECODE: '1',
    URL: server.url,
    KEY: project.key,
    WRITER: writer,
    CUSTOMER: customer,
    ORG: organization.id,
    ORG_KEY: organization.key,
    WEBHOOK: JSON.stringify({ secret, body, headers }),
  }
  const { stdout } = await promisify(execFile)(PYTHON, [join(import.meta.dirname, 'python-client.py')], { env })
  assert.deepEqual(JSON.parse(stdout), {
    written: [1501, 1500, 1, 1500, 'unknown_reference'],
    again: 1500,
    refused: [403, 'scope_missing'],
    rejected: [400, 'records_rejected'],
    listed: 1500,
    one: 'p7',
    lists: [0, 0, 0, 0, 0, 0, 0, 0],
    anonymized: ['2 profiles anonymized.', true],
    unknown: [404, ['nobody'], null],
    changes: [1500, true],
    later: [true],
    former: [true, '0001-01-01T00:00:00.000000Z'],
    charged: ['succeeded', true, true],
    settled: [true, true],
    refunded: ['succeeded', '0.50'],
    report: [['10.50', '0.50'], true],
    balance: [['tokens', '100']],
    left: '50',
    rest: '40',
    entries: [['100', '-30', '-20', '-10', '5', '-2'], { amount: 5 }, true],
    'top-up': ['on', '9.99', ['tokens']],
    'no top-up': ['unknown_top_up', []],
    'billing lists': { consumables: ['10.50'], refunds: ['0.50'], disputes: [] },
    poor: 'insufficient_credits',
    'no key': true,
    event: 'session.completed',
    forged: true,
  })
})
