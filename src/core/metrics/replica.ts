// Metrics of the replica: whether it is used, its lag, and where reads went.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Replica, ReplicaOptions } from '../lists/replica/replica.ts'

/** Registers the metrics of a replica; returns the function to call for each read. */
export function watchReplica(
  replica: () => Pick<Replica, 'usable' | 'lagMs'>,
  registers: Registry[],
): ReplicaOptions['observe'] {
  const usable: Gauge = new Gauge({
    name: 'tundish_replica_usable',
    help: '1 while the replica is fresh enough for reads.',
    aggregator: 'min',
    registers,
    collect: () => usable.set(replica().usable() ? 1 : 0),
  })
  const lag: Gauge = new Gauge({
    name: 'tundish_replica_lag_seconds',
    help: 'Upper bound of the replica’s lag.',
    aggregator: 'max',
    registers,
    collect: () => lag.set(replica().lagMs() / 1000),
  })
  const reads = new Counter({
    name: 'tundish_reads_total',
    help: 'Reads of the data API, by target and reason.',
    labelNames: ['target', 'why'],
    registers,
  })
  return (target, why) => reads.inc({ target, why })
}
