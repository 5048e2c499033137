// One of the two listeners without a database, for tests of its pages, guides and reference.
import { after, before } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { unconnectedListener } from '../../../scripts/openapi.ts'

/** For the tests of a `describe`: the listener, at its own port. */
export function setUpListener(side: 'public' | 'operator') {
  let listener: FastifyInstance
  let url: string
  before(async () => {
    listener = await unconnectedListener(side)
    url = await listener.listen({ host: '127.0.0.1', port: 0 })
  })
  after(async () => {
    // A browser keeps connections open on which it has sent nothing.
    listener.server.closeAllConnections()
    await listener.close()
  })
  return {
    get listener() {
      return listener
    },
    get url() {
      return url
    },
  }
}
