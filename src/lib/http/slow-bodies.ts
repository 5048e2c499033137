// Repeats a check of the headers, such as that of a key, when the body of a request took long to arrive.
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'

// As long as a key that was looked up is trusted.
const TRUSTED_MS = 1_000

/** Repeats `check`, which may throw, before the handlers of requests whose body took longer than a second. */
export function checkAfterSlowBody(scope: FastifyInstance, check: (request: FastifyRequest) => Promise<void>): void {
  scope.addHook('preHandler', async (request, { elapsedTime }) => {
    if (elapsedTime > TRUSTED_MS) await check(request)
  })
}

/** A body that is read while it arrives. Its end comes after `check`, whose error is that of the body. */
export const checkedAtEnd = (body: Readable, check: () => Promise<void>): Readable =>
  Readable.from(followed(body, check))

async function* followed(body: Readable, check: () => Promise<void>): AsyncGenerator<Buffer | string> {
  yield* body
  await check()
}
