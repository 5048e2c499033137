// The real server, or its billing API alone, which starts in half the time. It kills or freezes itself at a given point of a request;
// otherwise it reports the points that it crossed.
import { openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { openLog } from '../../src/lib/log.ts'
import { Points } from './points.ts'

const opened = await openApp(readConfig(process.env), { log: openLog('silent') })
// A frozen process continues at SIGCONT.
const points = new Points(process.env.POINT_SIGNAL as NodeJS.Signals | undefined)
const app = {
  ...opened,
  db: points.db(opened.db),
  keys: points.keys(opened.keys),
  providers: points.providers(opened.providers),
}
const { url, adminUrl } = await (process.env.POINT_API === 'billing' ? serveBilling() : serveAll())
process.on('message', ({ dieAt }: { dieAt?: number }) => {
  if (dieAt === undefined) process.send!({ points: points.names })
  else points.arm(dieAt)
})
process.on('disconnect', () => process.exit())
process.send!({ url, adminUrl })

/** Another process settles, so that the points of this one are those of the request alone. */
async function serveAll() {
  const { startServer } = await import('../../src/server/listeners/server.ts')
  return startServer(app, { worker: false })
}

/** As the public listener serves it. */
async function serveBilling() {
  const { openListener } = await import('../../src/lib/http/listener.ts')
  const { billingApi } = await import('../../src/payments/billing/api.ts')
  const { bounds, providerTimeoutMs, trustedProxies } = app.config
  const listener = openListener(app.log, app.metrics.http, { bounds })
  listener.register((scope) => billingApi(scope, { ...app, providerTimeoutMs, trustedProxies }), {
    prefix: '/:org_id/v1',
  })
  return { url: await listener.listen({ host: '127.0.0.1', port: 0 }), adminUrl: undefined }
}
