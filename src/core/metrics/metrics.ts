// The metrics for operators: counters of this process, gauges from the database, and the route `/metrics`.
import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Observe } from '../../lib/http/listener.ts'
import type { Db } from '../../lib/pg/db.ts'
import { tundishVersion } from '../../lib/version.ts'
import type { Provider, Providers } from '../../payments/providers/provider.ts'
import type { Replica, ReplicaOptions } from '../lists/replica/replica.ts'
import { merged, type ProcessMetrics, WORKER } from './merge.ts'
import { measured } from './provider.ts'
import { watchReplica } from './replica.ts'
import { gaugesOfWork } from './work.ts'

export interface Metrics {
  /** Called for every response of a listener. */
  http: Observe
  /** Returns the provider with every call measured. */
  measure(provider: Provider): Provider
  /** Counts the notifications of payment providers, by subject and outcome. */
  countNotification(psp: string, about: string, outcome: string): void
  /** Counts the records that a key wrote, by outcome. */
  countRecords(keyId: string, counts: Readonly<Record<string, number>>): void
  /** Registers the metrics of the replica; returns the function to call for each read. */
  replica(replica: () => Pick<Replica, 'usable' | 'lagMs'>): ReplicaOptions['observe']
  /** Serves `/metrics` on the operator's listener. It needs no key, and no metric contains the name of a tenant. */
  route(listener: FastifyInstance, providers: Providers): void
  /** The metrics of this process alone; complete once `route` was called. */
  ofThisProcess(): Promise<ProcessMetrics>
}

/** Given to one of several workers: its number, and the metrics of all workers. */
export interface WorkerMetrics {
  number: number
  allMetrics(): Promise<ProcessMetrics[]>
}

// From a response from memory to a charge at a slow provider.
const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

// How often the lag of the event loop is measured: each measurement wakes an idle process. It is also the smallest lag
// shown. The default is 10 ms.
const LAG_EVERY_MS = 20

export function openMetrics(db: Db, worker?: WorkerMetrics): Metrics {
  const registry = new Registry()
  const registers = [registry]
  // Gauges from the database have the same value in every worker, so they are read once and not summed.
  const database = new Registry()
  const calls = new Histogram({
    name: 'tundish_provider_call_duration_seconds',
    help: 'Calls to payment providers, by call and outcome.',
    labelNames: ['provider', 'call', 'outcome'],
    buckets: BUCKETS_S,
    registers,
  })

  const notifications = new Counter({
    name: 'tundish_provider_notifications_total',
    help: 'Notifications of payment providers, by subject and outcome.',
    labelNames: ['provider', 'about', 'outcome'],
    registers,
  })

  return {
    http: observeHttp(registers),
    measure: (provider) => measured(provider, calls),
    countNotification: (provider, about, outcome) => notifications.inc({ provider, about, outcome }),
    countRecords: countRecords(registers),
    replica: (replica) => watchReplica(replica, registers),
    ofThisProcess: () => registry.getMetricsAsJSON(),
    route(listener, providers) {
      collectDefaultMetrics({
        register: registry,
        eventLoopMonitoringPrecision: LAG_EVERY_MS,
        ...(worker && { labels: { [WORKER]: String(worker.number) } }),
      })
      buildInfo(registers)
      gaugesOfPool(db, registers)
      gaugesOfWork(db, [database])
      gaugesOfCircuits(providers, registers)
      const ofProcesses = async () => (worker ? merged(await worker.allMetrics()) : registry).metrics()
      const schema = { hide: true } as never
      listener.get('/metrics', { schema }, async (_request, reply) =>
        reply
          .type(registry.contentType)
          .header('x-content-type-options', 'nosniff')
          .send((await Promise.all([ofProcesses(), database.metrics()])).join('\n')),
      )
    },
  }
}

// Bounds the label: the records of further keys are counted together.
const MOST_KEYS = 100

function countRecords(registers: Registry[]): Metrics['countRecords'] {
  const records = new Counter({
    name: 'tundish_records_total',
    help: 'Records sent to the data API, by the id of the key and outcome.',
    labelNames: ['key', 'outcome'],
    registers,
  })
  const keys = new Set<string>()
  return (keyId, counts) => {
    if (keys.size < MOST_KEYS) keys.add(keyId)
    const key = keys.has(keyId) ? keyId : 'other'
    for (const [outcome, n] of Object.entries(counts)) if (n > 0) records.inc({ key, outcome }, n)
  }
}

function observeHttp(registers: Registry[]): Observe {
  const responses = new Histogram({
    name: 'tundish_http_request_duration_seconds',
    help: 'Requests by interface, declared route, method and status.',
    labelNames: ['interface', 'route', 'method', 'status'],
    buckets: BUCKETS_S,
    registers,
  })
  const broken = new Counter({
    name: 'tundish_http_broken_requests_total',
    help: 'Requests that were not valid HTTP, too large or too slow.',
    labelNames: ['status'],
    registers,
  })
  // Looking up labels costs more than observing a value, so each combination is looked up once. There are few of them.
  const children = new Map<string, Histogram.Internal<string>>()
  return {
    responded({ routeOptions, method }, { statusCode, elapsedTime }) {
      const route = routeOptions.url ?? 'none'
      const key = `${statusCode}${method}${route}`
      let child = children.get(key)
      if (!child) {
        child = responses.labels({ interface: interfaceOf(route), route, method, status: String(statusCode) })
        children.set(key, child)
      }
      child.observe(elapsedTime / 1000)
    },
    broken: (status) => broken.inc({ status }),
  }
}

function interfaceOf(route: string): string {
  if (route.startsWith('/public/')) return 'data'
  if (route.startsWith('/:org_id/')) return 'billing'
  if (route.startsWith('/admin/')) return 'operator'
  return 'none'
}

function buildInfo(registers: Registry[]): void {
  const info = new Gauge({
    name: 'tundish_build_info',
    help: 'Always 1; the labels have the version.',
    labelNames: ['version', 'node'],
    aggregator: 'first',
    registers,
  })
  info.set({ version: tundishVersion(), node: process.version }, 1)
}

function gaugesOfPool(db: Db, registers: Registry[]): void {
  const connections = new Gauge({
    name: 'tundish_database_connections',
    help: 'Connections for transactions, by state; max is the limit of this process.',
    labelNames: ['state'],
    registers,
    collect() {
      const { open, idle, most } = db.activity()
      connections.set({ state: 'idle' }, idle)
      connections.set({ state: 'busy' }, open - idle)
      connections.set({ state: 'max' }, most)
    },
  })
  const waiting = new Gauge({
    name: 'tundish_database_waiting',
    help: 'Waiting work: for a connection, for the result of a read, for the tenant’s turn.',
    labelNames: ['for'],
    registers,
    collect() {
      const { waiting: pool, reads, turns } = db.activity()
      waiting.set({ for: 'connection' }, pool)
      waiting.set({ for: 'read' }, reads)
      waiting.set({ for: 'turn' }, turns)
    },
  })
}

function gaugesOfCircuits(providers: Providers, registers: Registry[]): void {
  const circuits = new Gauge({
    name: 'tundish_provider_circuit_open',
    help: '1 while the circuit of a merchant account is open and new charges are refused.',
    labelNames: ['provider', 'merchant_id'],
    aggregator: 'max',
    registers,
    collect() {
      circuits.reset()
      for (const one of providers.opened())
        circuits.set({ provider: one.name, merchant_id: one.merchantId }, one.circuitIsOpen() ? 1 : 0)
    },
  })
}
