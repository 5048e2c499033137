// Sees to it that a connection outlives the worker it was being handed to.
import cluster, { type Worker } from 'node:cluster'

interface Connection {
  close(): void
}

// How node:cluster hands over a connection, and how the worker says that it has it. Node keeps both to itself.
type Sent = { act?: string; seq?: number }
type Heard = { ack?: number }

/**
 * Gives each connection that `worker` dies with, before it has said that it took it, to another one. Left alone,
 * node:cluster keeps such a connection open for ever, unserved; under load it happens at every death, for
 * clients reconnect before the death is known.
 */
export function saveConnections(worker: Worker): void {
  const child = worker.process
  const underWay = new Map<number, Connection>()
  const send = child.send as (...message: unknown[]) => boolean
  child.send = (...given: unknown[]) => {
    const [message, connection] = given as [Sent, Connection]
    if (message.act === 'newconn' && message.seq !== undefined) underWay.set(message.seq, connection)
    return send.apply(child, given)
  }
  const internals = child as unknown as NodeJS.EventEmitter
  internals.on('internalMessage', ({ ack }: Heard) => {
    if (ack !== undefined) underWay.delete(ack)
  })
  const save = () => {
    for (const [seq, connection] of underWay) {
      // As a worker answers that is just closing its listener. The last one has taken the listening socket along.
      if (othersListen(worker)) internals.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false })
      else connection.close()
    }
    underWay.clear()
  }
  child.once('disconnect', save)
  // With a connection under way Node waits in vain for its receipt, and tells of no disconnection.
  child.once('exit', () => {
    if (!worker.isConnected()) save()
  })
}

function othersListen(worker: Worker): boolean {
  const others = Object.values(cluster.workers ?? {}).filter((one) => one && one !== worker && one.isConnected())
  return others.some((one) => (one as unknown as { state: string }).state === 'listening')
}
