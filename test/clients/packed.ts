// The client packed and unpacked as npm would, a shop to try it on, and what the scenario must return in every runtime.
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import type { Billing, Organization } from '../support/billing.ts'
import { BASICS, insert } from '../support/data.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const WEBHOOK_SECRET = `whsec_${Buffer.from('secret_of_a_project').toString('base64')}`

/** A shop with records of every list. */
export async function openShop(billing: Billing): Promise<Organization> {
  const shop = await billing.organization()
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
  return shop
}

/** An address that redirects every request to another. */
export async function openRedirects(to: string) {
  const server = createServer(({ url }, response) => response.writeHead(302, { location: `${to}${url}` }).end())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

/** What the scenario needs to know, for a customer who has not charged yet. */
export async function configOf(billing: Billing, shop: Organization, redirects: string): Promise<object> {
  return {
    url: billing.server.url,
    projectKey: shop.projectKey,
    organization: { id: shop.id, key: shop.key },
    externalId: await shop.customer(),
    webhook: signed(),
    redirects,
  }
}

/** What the scenario returns, but for its horizon. */
export const EXPECTED = {
  profiles: 21,
  total: 21,
  active: ['active'],
  reply: ['a', 'b'],
  // The first response was lost: the second request replays the first charge.
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
  redirected: [true, 'The server redirects: give the client its final address.'],
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
export async function install(): Promise<string> {
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
  for (const name of ['scenario.mjs', 'run-scenario.mjs', 'run-in-worker.mjs', 'workerd.mjs']) {
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

export function findNode20(): string | undefined {
  const places = [
    process.env['NODE20'] ?? '',
    ...(process.env['PATH'] ?? '').split(delimiter).map((at) => join(at, 'node')),
  ]
  return places.find((path) => path && spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout?.startsWith('v20.'))
}
