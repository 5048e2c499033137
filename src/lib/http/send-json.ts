// Sends JSON that is already text or bytes.
import type { FastifyReply } from 'fastify'
import { JsonBytes } from '../json/buffer.ts'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends finished JSON; the memory of `JsonBytes` is freed when it has been sent. */
export function sendJson(reply: FastifyReply, json: string | Buffer | JsonBytes): FastifyReply {
  reply.header('content-type', JSON_TYPE)
  if (!(json instanceof JsonBytes)) return reply.send(json)
  reply.raw.once('finish', () => json.free())
  return reply.send(json.written())
}
