// The shards of an installation: a folder with a file of settings for each, NAME.env.
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Config, readConfig } from '../../config.ts'
import { readEnvFile } from '../../lib/env-file.ts'
import { UsageError } from '../../lib/errors.ts'
import { equalSecrets } from '../../lib/secrets.ts'
import { settingReader } from '../../lib/setting-files.ts'

/** One Tundish with its database, which holds whole organizations. */
export interface Shard {
  name: string
  /** The settings of its file alone. */
  env: Record<string, string>
  config: Config
  /** Its database, past any pooler. */
  databaseUrl: string
  /** Its database as the server of another shard reaches it. */
  replicationUrl: string
}

/** The place in the maps of an organization whose requests are to be repeated in a moment. */
export const MOVING = 'moving'

const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/

/** Reads all shards, by name. Throws a `UsageError` for a mistake in any of them. */
export function readShards(folder: string): Shard[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.env'))
    .sort()
  if (files.length === 0) throw new UsageError(`${folder} has no settings of a shard: write a file NAME.env for each.`)
  const shards = files.map((file) => readShard(join(folder, file)))
  const [first] = shards
  // A key sealed on one shard is opened on another after a move.
  const other = shards.find(({ config }) => !equalSecrets(config.masterKey!, first!.config.masterKey!))
  if (other) throw new UsageError(`${other.name} has another MASTER_KEY than ${first!.name}: all shards need the same.`)
  const same = shards.find(({ databaseUrl }, n) => shards.findIndex((one) => one.databaseUrl === databaseUrl) < n)
  if (same) throw new UsageError(`${same.name} has the database of another shard.`)
  return shards
}

function readShard(file: string): Shard {
  const name = basename(file, '.env')
  if (!NAME.test(name) || name === MOVING)
    throw new UsageError(`${file} must be named after its shard, in lower-case letters, digits and "-".`)
  const env = readEnvFile(file) as Record<string, string>
  try {
    const config = readConfig(env)
    if (!config.databaseUrl) throw new UsageError('DATABASE_URL is required: the embedded database cannot be a shard.')
    const databaseUrl = config.directDatabaseUrl ?? config.databaseUrl
    return { name, env, config, databaseUrl, replicationUrl: readReplicationUrl(env) ?? databaseUrl }
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${file}: ${error.message}`)
    throw error
  }
}

function readReplicationUrl(env: Record<string, string>): string | undefined {
  const mistakes: string[] = []
  const url = settingReader(env, mistakes)('REPLICATION_DATABASE_URL')
  // The value is not repeated: it holds a password. PostgreSQL would.
  if (url !== undefined && !/^postgres(ql)?:\/\//.test(url))
    mistakes.push('REPLICATION_DATABASE_URL must begin with postgres:// or postgresql://.')
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
  return url
}

/** The shard with this name, or a `UsageError` that lists all. */
export function shardNamed(shards: readonly Shard[], name: string): Shard {
  const found = shards.find((shard) => shard.name === name)
  if (found) return found
  const known = shards.map((shard) => shard.name).join(', ')
  throw new UsageError(`There is no shard "${name}": the shards are ${known}.`)
}
