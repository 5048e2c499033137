// @tundish/client from its packed tarball, in Node 24, in Node 20 and in a worker, against the real server.
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { Webhook } from 'standardwebhooks'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { BASICS, insert } from '../support/data.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const WEBHOOK_SECRET = `whsec_${Buffer.from('secret_of_a_project').toString('base64')}`

const node20 = findNode20()

describe('@tundish/client', () => {
  let billing: Billing
  let shop: Organization
  let folder: string
  before(async () => {
    billing = await startBilling()
    shop = await billing.organization()
    const profiles = Array.from({ length: 20 }, (_, n) => ({ id: `p-${n}` }))
    await insert(
      billing.db,
      { id: shop.projectId, organizationId: shop.id },
      {
        ...BASICS,
        profiles: [{ id: 'profile' }, ...profiles],
        replies: [{ session_id: 'session', value: ['a', 'b'] }],
        subscriptions: [{ id: 'active' }, { id: 'expired', status: 'expired' }],
        transactions: [{ id: 'transaction', subscription_id: 'active' }],
      },
    )
    folder = await install()
  })
  after(async () => {
    await billing.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const inNode24 = 'reads, charges once, reports errors and walks all changes'
  test(`${inNode24}: Node 24`, () => check(process.execPath, ['run-scenario.mjs']))
  test(`${inNode24}: Node 20${node20 ? '' : ' (skipped: there is none on the PATH)'}`, { skip: !node20 }, () =>
    check(node20!, ['run-scenario.mjs']),
  )
  test(`${inNode24}: a worker without the modules of Node`, () =>
    check(process.execPath, [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      'run-in-worker.mjs',
    ]))

  test('the packed runtime is under 15 kB gzipped', () => {
    const dist = join(folder, 'node_modules/@tundish/client/dist')
    const files = readdirSync(dist).filter((name) => name.endsWith('.js'))
    const bytes = gzipSync(Buffer.concat(files.map((name) => readFileSync(join(dist, name))))).length
    assert.ok(files.length > 5 && bytes < 15_000, `${bytes} bytes`)
  })

  async function check(node: string, args: string[]): Promise<void> {
    const externalId = await shop.customer()
    const config = {
      url: billing.server.url,
      projectKey: shop.projectKey,
      organization: { id: shop.id, key: shop.key },
      externalId,
      webhook: signed(),
    }
    const { stdout } = await run(node, args, { cwd: folder, env: { CONFIG: JSON.stringify(config) }, timeout: 60_000 })
    const { horizon, ...result } = JSON.parse(stdout)
    assert.match(horizon, /^20\d\d-.+Z$/)
    assert.deepEqual(result, EXPECTED)
  }
})

const EXPECTED = {
  profiles: 21,
  total: 21,
  active: ['active'],
  reply: ['a', 'b'],
  // The first answer was lost: the second request replays the first charge.
  charge: ['succeeded', true],
  consumables: [['10.50', true]],
  refund: ['succeeded', '0.50', '0.50'],
  report: ['10.50', '0.50'],
  refusals: [
    [true, 404, 'object_not_found', true],
    [true, 401, 'unauthorized', true],
    [true, 400, 'idempotency_key_reused', true],
  ],
  lost: [true, 3],
  changes: {
    funnels: 1,
    experiments: 1,
    products: 1,
    profiles: 21,
    sessions: 1,
    replies: 1,
    subscriptions: 2,
    transactions: 1,
  },
  event: ['profile.anonymized', 'profile'],
  forged: 'WebhookVerificationError',
}

/** Packs the client and unpacks it as npm would, with its dependencies from here. */
async function install(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-client-'))
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: join(ROOT, 'clients/js'),
  })
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('[')))
  const home = join(folder, 'node_modules/@tundish')
  mkdirSync(home, { recursive: true })
  await run('tar', ['-xzf', join(folder, filename), '-C', home])
  await run('mv', [join(home, 'package'), join(home, 'client')])
  for (const name of ['standardwebhooks', '@stablelib', 'fast-sha256']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  }
  for (const name of ['scenario.mjs', 'run-scenario.mjs', 'run-in-worker.mjs']) {
    cpSync(join(import.meta.dirname, name), join(folder, name))
  }
  return folder
}

function signed() {
  const body = JSON.stringify({ type: 'profile.anonymized', data: { id: 'profile' } })
  const now = new Date()
  const headers = {
    'webhook-id': 'evt',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(WEBHOOK_SECRET).sign('evt', now, body),
  }
  return { body, headers, secret: WEBHOOK_SECRET }
}

function findNode20(): string | undefined {
  const places = [
    process.env['NODE20'] ?? '',
    ...(process.env['PATH'] ?? '').split(delimiter).map((at) => join(at, 'node')),
  ]
  return places.find((path) => path && spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout?.startsWith('v20.'))
}
