// The control interface of a simulator with a provider's API: what happens at the provider by time, by a network, or by its user.
import type { FastifyInstance } from 'fastify'
import { type Schema, Type } from '../lib/shape/schema.ts'
import type { ProviderDialect } from './dialect.ts'
import type { JournaledState } from './journaled-state.ts'
import type { Ordered, OrderedFaults } from './ordered-faults.ts'

const Milliseconds = Type.Integer({ minimum: 0 })
const troubles = ['drop_before', 'drop_after', 'error_before', 'error_after', 'late', 'slow']
const refusals = ['busy', 'locked', 'in_use', 'forbidden']

const bodies = {
  clock: Type.Object({ advance_ms: Milliseconds }),
  fault: Type.Object({
    method: Type.Optional(Type.String()),
    path: Type.String(),
    kind: Type.Union([...troubles, ...refusals].map((kind) => Type.Literal(kind))),
    ms: Type.Optional(Milliseconds),
    times: Type.Optional(Type.Integer({ minimum: 1 })),
    permission: Type.Optional(Type.String()),
  }),
  events: Type.Object({
    copies: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    delayMs: Type.Optional(Milliseconds),
    shuffled: Type.Optional(Type.Boolean()),
    isOff: Type.Optional(Type.Boolean()),
  }),
  key: Type.Object({ key: Type.String() }),
}

// Objects of a whole account may be stored at once.
const LARGEST_BODY = 64 * 1024 * 1024

/** Adds an action: `work` gets the body, and the id in the path. */
export type Post = <Body>(
  path: string,
  body: Schema<Body> | undefined,
  work: (body: Body, id: string) => unknown,
) => unknown

/** Adds the actions that every provider's simulator has. @param ledger every movement of money, by which tests detect double charges */
export function addControl<Fault extends Ordered>(
  server: FastifyInstance,
  dialect: ProviderDialect<JournaledState<object, string>, never, never> & { faults: OrderedFaults<Fault> },
  ledger: () => object[],
): Post {
  const post: Post = (path, body, work) =>
    server.post<{ Params: { id: string }; Body: never }>(
      `/_control${path}`,
      { bodyLimit: LARGEST_BODY, ...(body && { schema: { body } }) },
      async (request) => {
        const response = work(request.body as never, request.params.id) ?? {}
        await dialect.state.durable()
        return response
      },
    )
  post('/clock', bodies.clock, ({ advance_ms }) => {
    dialect.advance(advance_ms)
    return { now_ms: dialect.state.nowMs() }
  })
  post('/faults', bodies.fault as Schema<Fault>, (fault) => dialect.faults.order({ ...{ ms: 0, times: 1 }, ...fault }))
  post('/faults/clear', undefined, () => dialect.faults.clear())
  post('/events', bodies.events, (mode) => Object.assign(dialect.deliveries.mode, mode))
  post('/keys/revoke', bodies.key, ({ key }) => void dialect.revoked.add(key))
  server.get('/_control/calls', async () => ({ calls: dialect.calls }))
  server.get('/_control/ledger', async () => {
    await dialect.state.durable()
    return ledger()
  })
  return post
}
