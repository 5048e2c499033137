// Passes a connection on to another worker if the worker that should take it ends first.
import cluster, { type Worker } from 'node:cluster'

interface Connection {
  close(): void
}

// Internal messages of node:cluster: the supervisor sends a connection, and the worker acknowledges it.
type ConnectionSent = { act?: string; seq?: number }
type Acknowledged = { ack?: number }

/**
 * Gives each connection that `worker` has not acknowledged when it ends to another worker. Without this, node:cluster keeps
 * such a connection open without end, unserved. Under load that happens each time a worker ends, because clients reconnect
 * before the supervisor notices.
 */
export function rescueConnections(worker: Worker): void {
  const child = worker.process
  const unacknowledged = new Map<number, Connection>()
  const send = child.send as (...message: unknown[]) => boolean
  child.send = (...given: unknown[]) => {
    const [message, connection] = given as [ConnectionSent, Connection]
    if (message.act === 'newconn' && message.seq !== undefined) unacknowledged.set(message.seq, connection)
    return send.apply(child, given)
  }
  const internals = child as unknown as NodeJS.EventEmitter
  internals.on('internalMessage', ({ ack }: Acknowledged) => {
    if (ack !== undefined) unacknowledged.delete(ack)
  })
  const rescue = () => {
    for (const [seq, connection] of unacknowledged) {
      // The message of a worker that closes its listener; node:cluster then chooses another worker. Without another worker the
      // listening socket is closed already.
      if (othersListen(worker)) internals.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false })
      else connection.close()
    }
    unacknowledged.clear()
  }
  child.once('disconnect', rescue)
  // Node does not emit `disconnect` while it waits for an acknowledgement.
  child.once('exit', () => {
    if (!worker.isConnected()) rescue()
  })
}

function othersListen(worker: Worker): boolean {
  const others = Object.values(cluster.workers ?? {}).filter((one) => one && one !== worker && one.isConnected())
  return others.some((one) => (one as unknown as { state: string }).state === 'listening')
}
