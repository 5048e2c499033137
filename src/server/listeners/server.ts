// Starts the server: the public listener with both APIs, the operator's listener, and the background work.
import type { FastifyInstance } from 'fastify'
import type { App } from '../../app.ts'
import type { Config } from '../../config.ts'
import { eraseAtProviders } from '../../core/erasure/at-provider.ts'
import { deliverEvents } from '../../core/events/dispatcher.ts'
import { deleteOldDeliveries } from '../../core/events/retention.ts'
import { sweepCounts } from '../../core/lists/counts.ts'
import { openReads } from '../../core/lists/reads.ts'
import { openSyncReaders } from '../../core/lists/sync-readers.ts'
import { foldEmails } from '../../core/records/folded-emails.ts'
import { describeSessions } from '../../data/figures/describe.ts'
import { followFigures } from '../../data/figures/follow.ts'
import { markRates } from '../../data/figures/rate-marks.ts'
import { expireSubscriptions } from '../../data/ingest/expire.ts'
import { openFeed } from '../../data/ingest/feed.ts'
import { carryOutImports } from '../../data/ingest/stripe/background.ts'
import { openWriters } from '../../data/ingest/writers.ts'
import { publicApi } from '../../data/public/api.ts'
import { UsageError } from '../../lib/errors.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import { openListener } from '../../lib/http/listener.ts'
import { describePages } from '../../lib/http/reference-page.ts'
import { watchFailovers } from '../../operations/failover/watch.ts'
import { adminListener } from '../../operator/admin/listener.ts'
import { sendAlerts } from '../../operator/alerts/run.ts'
import { dashboard, pageNotFound } from '../../operator/dashboard/dashboard.ts'
import { billingApi } from '../../payments/billing/api.ts'
import { billingContext } from '../../payments/billing/context.ts'
import { expireCredits } from '../../payments/billing/credits/expiry.ts'
import { fetchRatesDaily } from '../../payments/billing/rates/fetch-rates.ts'
import { startSettling } from '../../payments/billing/settling.ts'
import { startTopUps } from '../../payments/billing/top-up/run.ts'
import { notificationsApi } from '../notifications/api.ts'
import { readMissedNotifications } from '../notifications/missed.ts'
import { handlePending, openPending } from '../notifications/pending.ts'
import { serveHome } from '../pages/home.ts'
import { health } from './health.ts'
import { describePublic } from './openapi.ts'
import { addressOf, listenProblem, type Side } from './ports.ts'

export interface Running {
  app: App
  /** Addresses of the listeners, with the ports they got. */
  url: string
  adminUrl: string | undefined
  /** Finishes the requests in flight and the running background work. The app stays open. */
  stop(): Promise<void>
}

export interface Server extends Running {
  /** Begins the background work. Further calls do nothing. */
  work(): void
  /** Like `stop`, but lets idle clients reconnect to another worker first. A `stop` ends the wait. */
  leave(): Promise<void>
}

export interface ServerOptions {
  /** Whether this process does the background work too. */
  worker?: boolean
}

/** Starts to serve. Throws a `UsageError` when a port is taken. */
export async function startServer(app: App, { worker = true }: ServerOptions = {}): Promise<Server> {
  const listener = await publicListener(app)
  const admin = await adminListener(app, { mount: dashboard, pathNotFound: pageNotFound(app) })
  const url = await listen(listener, 'public', app.config)
  const adminUrl = await listen(admin, 'operator', app.config).catch(async (error) => {
    await listener.close()
    throw error
  })
  let stopWork: (() => Promise<void>) | undefined
  const work = () => {
    stopWork ??= startWork(app)
  }
  if (worker) work()
  return {
    app,
    url,
    adminUrl,
    work,
    async leave() {
      await Promise.all([listener.leave(), admin.leave(), stopWork?.()])
    },
    async stop() {
      await Promise.all([listener.close(), admin.close()])
      await stopWork?.()
    },
  }
}

/** Starts the background work; returns a function that finishes it and resolves. */
export function startWork(app: App): () => Promise<void> {
  const { providerTimeoutMs } = app.config
  const stops = [
    sweepCounts(app),
    startSettling({ ...app, providerTimeoutMs }),
    expireCredits(app),
    startTopUps(billingContext(app)),
    readMissedNotifications(notificationContext(app)),
    handlePending(notificationContext(app)),
    eraseAtProviders(app),
    foldEmails(app),
    deliverEvents(app),
    deleteOldDeliveries(app),
    followFigures(app),
    describeSessions(app),
    carryOutImports(app),
    sendAlerts(app),
    fetchRatesDaily(app, markRates),
    expireSubscriptions(app),
    ...(app.embedded ? [] : [watchFailovers(app)]),
  ]
  return async () => {
    await Promise.all(stops.map((stop) => stop()))
  }
}

const notificationContext = (app: App) => ({
  ...billingContext(app),
  countNotification: app.metrics.countNotification,
})

/** The public listener with every route, not yet listening. */
export async function publicListener(app: App): Promise<FastifyInstance> {
  const listener = openListener(app.log, app.metrics.http, { bounds: app.config.bounds, censor: hideSecrets })
  await describePublic(listener)
  describePages(listener)
  serveHome(listener)
  health(listener, app)
  const { db, keys, keyUses, limits, audit, config } = app
  const reads = await openReads(app)
  const syncReaders = openSyncReaders(app)
  const feed = openFeed(app)
  const writers = openWriters(app)
  listener.addHook('onClose', async () => {
    await Promise.all([reads.close(), syncReaders.close(), feed.close(), writers.close()])
  })
  listener.register(
    (scope) =>
      publicApi(scope, {
        ...{ db, log: app.log, feed, reads, syncReaders, writers, keys, keyUses, limits, audit },
        countRecords: app.metrics.countRecords,
        ...config,
      }),
    {
      prefix: '/public/v1',
    },
  )
  const { providerTimeoutMs, trustedProxies } = config
  const pending = openPending(notificationContext(app))
  listener.addHook('onClose', () => pending.close())
  listener.register((scope) => notificationsApi(scope, { ...notificationContext(app), pending }), {
    prefix: '/:org_id/v1',
  })
  listener.register((scope) => billingApi(scope, { ...app, providerTimeoutMs, trustedProxies }), {
    prefix: '/:org_id/v1',
  })
  await listener.ready()
  return listener
}

async function listen(listener: FastifyInstance, side: Side, config: Config): Promise<string> {
  try {
    return await listener.listen(addressOf(side, config))
  } catch (error) {
    const problem = listenProblem(error, side, config)
    throw problem ? new UsageError(problem) : error
  }
}
