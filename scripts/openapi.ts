// Prints the OpenAPI document of a listener, generated from its routes without a server or database: [public|operator]
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { App } from '../src/app.ts'
import { readConfig } from '../src/config.ts'
import { auditHeadsPath, openAudit } from '../src/core/audit/audit.ts'
import { openLimits } from '../src/core/limits/limits.ts'
import { openMetrics } from '../src/core/metrics/metrics.ts'
import { openKeyCache } from '../src/core/tenants/key-cache.ts'
import { openKeyUses } from '../src/core/tenants/key-uses.ts'
import { systemClock } from '../src/lib/clock.ts'
import { openLog } from '../src/lib/log.ts'
import { openDb } from '../src/lib/pg/db.ts'
import { openSeal } from '../src/lib/secrets.ts'
import { adminListener } from '../src/operator/admin/listener.ts'
import { publicListener } from '../src/server/listeners/server.ts'
import { fixedProviders } from '../test/payments/billing/scripted-provider.ts'

export const SIDES = { public: publicListener, operator: adminListener }

/** A listener with every route. Its database is never connected, because no query is sent. */
export async function unconnectedListener(side: keyof typeof SIDES = 'public'): Promise<FastifyInstance> {
  const databaseUrl = 'postgresql://127.0.0.1:9/nowhere'
  const db = openDb({ url: databaseUrl, applicationName: 'tundish' })
  const config = readConfig({})
  const seal = openSeal(randomBytes(32))
  const log = openLog('silent')
  const app: App = {
    config,
    databaseUrl,
    embedded: false,
    notice: undefined,
    migrated: [],
    db,
    log,
    clock: systemClock,
    seal,
    keys: openKeyCache(db, systemClock),
    keyUses: openKeyUses({ db, log }),
    limits: openLimits({ config, db, clock: systemClock, log }),
    metrics: openMetrics(db),
    audit: openAudit(seal, auditHeadsPath(config), log),
    providers: fixedProviders([]),
    simulatorUrls: {},
    close: () => db.close(),
  }
  return SIDES[side](app)
}

if (import.meta.main) {
  const listener = await unconnectedListener(process.argv[2] === 'operator' ? 'operator' : 'public')
  process.stdout.write(`${JSON.stringify(listener.swagger(), null, 2)}\n`)
}
