// The real server, which kills or freezes itself at a given point of a request; otherwise it reports the points that it crossed.
import { openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { openLog } from '../../src/lib/log.ts'
import { startServer } from '../../src/server/listeners/server.ts'
import { Points } from './points.ts'

const app = await openApp(readConfig(process.env), { log: openLog('silent') })
// A frozen process continues at SIGCONT.
const points = new Points(process.env.POINT_SIGNAL as NodeJS.Signals | undefined)
const wrapped = { db: points.db(app.db), keys: points.keys(app.keys), providers: points.providers(app.providers) }
// Another process settles, so that the points of this one are those of the request alone.
const { url, adminUrl } = await startServer({ ...app, ...wrapped }, { worker: false })
process.on('message', ({ dieAt }: { dieAt?: number }) => {
  if (dieAt === undefined) process.send!({ points: points.names })
  else points.arm(dieAt)
})
process.on('disconnect', () => process.exit())
process.send!({ url, adminUrl })
