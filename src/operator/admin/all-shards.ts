// Refuses requests that concern all shards, where HAProxy in front of them sends each request to one.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../lib/errors.ts'
import { isReading, type Operation } from './operation.ts'

/** Whether HAProxy could have chosen any shard, because the request names no organization, project or key of its maps. */
export const isForAnyShard = ({ headers }: FastifyRequest) => headers['x-tundish-shard'] === 'none'

/** A hook that refuses such requests with this sentence. Otherwise one shard would respond as if it were all. */
export const refuseForAnyShard = (sentence: string) => async (request: FastifyRequest) => {
  if (isForAnyShard(request)) throw new ApiError(421, 'concerns_all_shards', sentence)
}

/** The hook for an operation, or undefined if its path names a tenant. */
export function shardHook(operation: Operation) {
  const { path, command } = operation
  if (/:(organization|project)_id/.test(path)) return undefined
  return refuseForAnyShard(
    isReading(operation)
      ? `This address forwards each request to one shard, and this operation concerns all of them. Run "tundish shards run --in FOLDER --merge -- ${command}".`
      : `This address forwards each request to the shard of its organization, and the path of this operation names none. Run "tundish ${command}" with the settings of one shard, or send the request to its own address.`,
  )
}
