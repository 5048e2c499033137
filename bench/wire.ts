// The reference "wire": Fastify sending a constant text of the size in the path.
import Fastify from 'fastify'

const app = Fastify()
const bodies = new Map<string, string>()

app.get<{ Params: { bytes: string } }>('/:bytes', async ({ params: { bytes } }, reply) => {
  let body = bodies.get(bytes)
  if (body === undefined) {
    body = JSON.stringify('x'.repeat(Math.max(0, Number(bytes) - 2)))
    bodies.set(bytes, body)
  }
  return reply.header('content-type', 'application/json; charset=utf-8').send(body)
})

const url = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${url}\n`)
process.on('SIGTERM', () => process.exit(0))
