// The real server, which dies at the point of a request that it is told; else it tells the points that were crossed.
import { openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { openLog } from '../../src/lib/log.ts'
import { startServer } from '../../src/server/server.ts'
import { Points } from './points.ts'

const app = await openApp(readConfig(process.env), { log: openLog('silent') })
const points = new Points()
const wrapped = { db: points.db(app.db), keys: points.keys(app.keys), providers: points.providers(app.providers) }
// Whoever settles is another process: this one's points are those of the request alone.
const { url } = await startServer({ ...app, ...wrapped }, { worker: false })
process.on('message', ({ dieAt }: { dieAt?: number }) => {
  if (dieAt === undefined) process.send!({ points: points.names })
  else points.last = dieAt
})
process.on('disconnect', () => process.exit())
process.send!({ url })
