// A server on the three nodes, as its own program, with a shop whose customers may be charged.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createOrganization, createProject } from '../../src/core/tenants/tenants.ts'
import { openLog } from '../../src/lib/log.ts'
import { addPayment } from '../support/billing.ts'
import { startProcess } from '../support/cli.ts'
import { addRow } from '../support/data.ts'
import { openSimulator } from '../support/simulators.ts'
import type { Shop } from './clients.ts'
import type { Nodes } from './nodes.ts'

const CUSTOMERS = 4

export interface Serving {
  shop: Shop
  env: Record<string, string>
  adminUrl: string
  simulatorUrl: string
  close(): Promise<void>
}

export async function serveShop(nodes: Nodes): Promise<Serving> {
  const folder = mkdtempSync(join(tmpdir(), 'tundish-failover-'))
  const simulator = await openSimulator()
  const env = {
    PATH: process.env['PATH'] ?? '',
    DATABASE_URL: nodes.url,
    READ_DATABASE_URL: nodes.readUrl,
    DATA_DIR: folder,
    MASTER_KEY: randomBytes(32).toString('base64'),
    SIMULATOR_URL: simulator.url,
    PORT: '0',
    ADMIN_PORT: '0',
    RATE_LIMIT: '0',
    LOG_LEVEL: 'info',
  }
  const keys = await fillShop(env, 'shop')
  const server = await startProcess(env)
  return {
    shop: { url: server.url, ...keys },
    env,
    adminUrl: server.adminUrl,
    simulatorUrl: simulator.url,
    async close() {
      await server.stop()
      await simulator.cleanUp()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** An organization with a project and customers who may be charged. */
export async function fillShop(env: Record<string, string>, organizationId: string): Promise<Omit<Shop, 'url'>> {
  const app = await openApp(readConfig(env), { log: openLog('silent') })
  try {
    const { secret_key: billingKey } = await createOrganization(app.db, app.seal, { id: organizationId })
    const project = await createProject(app.db, app.seal, { id: `${organizationId}-app`, organization: organizationId })
    await app.db.query('update organizations set one_off_charge_enabled = true')
    const customers = Array.from({ length: CUSTOMERS }, (_, n) => `user-${n}`)
    for (const id of customers) {
      const names = { organization_id: organizationId, project_id: project.id }
      await addRow(app.db, 'profiles', { project_id: project.id, id })
      await addRow(app.db, 'customers', { ...names, external_id: id, profile_id: id })
      await addPayment(app.db, organizationId, id, {})
    }
    return { organizationId, billingKey, projectKey: project.secret_key, customers }
  } finally {
    await app.close()
  }
}
