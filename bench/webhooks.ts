// Measures webhooks: the delay from an event's commit to its arrival, while a tenth of the endpoints never respond.
// bin/pinned-node --dev bench/webhooks.ts [--endpoints 1000] [--silent 100] [--rate 20] [--seconds 20] [--deadline-ms 10000]
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { App } from '../src/app.ts'
import { deliverEvents } from '../src/core/events/dispatcher.ts'
import { createEndpoint } from '../src/core/events/endpoints.ts'
import { write } from '../src/core/events/outbox.ts'
import { createProject } from '../src/core/tenants/tenants.ts'
import { ORGANIZATION } from './generate.ts'
import { percentile } from './measure.ts'
import { openRig } from './rig.ts'

const { values } = parseArgs({
  options: {
    endpoints: { type: 'string', default: '1000' },
    silent: { type: 'string', default: '100' },
    rate: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '20' },
    'deadline-ms': { type: 'string', default: '10000' },
  },
})
const endpoints = Number(values.endpoints)
const silent = Number(values.silent)
const rate = Number(values.rate)
const seconds = Number(values.seconds)
const deadlineMs = Number(values['deadline-ms'])
const PER_PROJECT = 10

const rig = await openRig({ say: console.error })
const app: App = { ...rig.app, config: { ...rig.app.config, webhookAllowPrivate: true } }
const receiver = await startReceiver()
try {
  const projects = await makeEndpoints(app)
  const stop = deliverEvents(app, { deadlineMs })
  const committed = await emit(app, projects)
  await sleep(2000)
  await stop()
  process.stdout.write(`${JSON.stringify(summary(committed), null, 2)}\n`)
} finally {
  receiver.close()
  await rig.close()
}

/** Responds at once, but never at the paths of silent endpoints. */
async function startReceiver() {
  const arrivals = new Map<string, number[]>()
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.url!.startsWith('/silent')) return
      const id = String(request.headers['webhook-id'])
      arrivals.set(id, [...(arrivals.get(id) ?? []), performance.now()])
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    arrivals,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Creates ten endpoints for each project; the silent ones are spread over the projects. */
async function makeEndpoints({ db, seal }: App): Promise<string[]> {
  const projects = Array.from({ length: Math.ceil(endpoints / PER_PROJECT) }, (_, n) => `bench-${n}`)
  for (const id of projects) await createProject(db, seal, { id, organization: ORGANIZATION })
  for (let n = 0; n < endpoints; n += 1) {
    const kind = n < silent ? 'silent' : 'quick'
    const settings = { url: `${receiver.url}/${kind}/${n}`, kinds: [], enabled: true }
    await db.tx((query) => createEndpoint(query, projects[n % projects.length]!, settings, { allowPrivate: true }))
  }
  return projects
}

/** Writes events at an even rate, for each project in turn; returns when each was committed. */
async function emit({ db }: App, projects: string[]): Promise<Map<string, number>> {
  const committed = new Map<string, number>()
  const begun = performance.now()
  for (let n = 0; n < rate * seconds; n += 1) {
    await sleep(Math.max(0, begun + (n * 1000) / rate - performance.now()))
    const object_id = `order-${n}`
    const project = projects[n % projects.length]!
    await db.tx((query) =>
      write(query, project, [{ type: 'charge.succeeded', object_id, profile_id: null, data: { order_id: object_id } }]),
    )
    const at = performance.now()
    const [row] = await db.query('select id from events where project_id = $1 and object_id = $2', [project, object_id])
    committed.set(row!.id!, at)
  }
  return committed
}

function summary(committed: Map<string, number>) {
  const delays = [...committed].flatMap(([id, at]) => (receiver.arrivals.get(id) ?? []).map((arrival) => arrival - at))
  const at = (share: number) => Math.round(percentile(delays, share) ?? -1)
  return {
    machine: `${cpus().length} × ${cpus()[0]?.model}`,
    endpoints,
    silent,
    events: committed.size,
    expected: Math.round((committed.size * PER_PROJECT * (endpoints - silent)) / endpoints),
    arrived: delays.length,
    delay_ms: { median: at(0.5), p90: at(0.9), p99: at(0.99), most: at(1) },
  }
}
