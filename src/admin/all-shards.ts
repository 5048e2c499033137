// Refuses what concerns all shards, at an address in front of them that leads to one at a time.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../lib/errors.ts'
import { isReading, type Operation } from './operation.ts'

/** Whether HAProxy sent the request to any of several shards, because it names no organization or project of its maps. */
export const isOfNoShard = ({ headers }: FastifyRequest) => headers['x-tundish-shard'] === 'none'

/** A hook that refuses requests of no shard. Otherwise one shard would respond as if it were all. */
export const refuseOfNoShard = (sentence: string) => async (request: FastifyRequest) => {
  if (isOfNoShard(request)) throw new ApiError(421, 'concerns_all_shards', sentence)
}

/** The same for an operation; undefined if its path names a tenant. */
export function refuseForAll(operation: Operation) {
  const { path, command } = operation
  if (/:(organization|project)_id/.test(path)) return undefined
  return refuseOfNoShard(
    isReading(operation)
      ? `This address leads to one shard at a time, and this operation concerns all of them. Run "tundish shards run --in FOLDER --merge -- ${command}".`
      : `This address leads to the shard of an organization, and this operation names none. Run "tundish ${command}" with the settings of one shard, or send the request to its own address.`,
  )
}
