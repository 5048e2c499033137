// A mover that stops itself by SIGSTOP before a statement, as a machine that is frozen does: FOLDER FROM TO PATTERN NUMBER.
import pg from 'pg'
import { move } from '../../src/operations/shards/move.ts'
import { readShards, shardNamed } from '../../src/operations/shards/shard.ts'

const [folder, from, to, pattern, number] = process.argv.slice(2) as [string, string, string, string, string]
let left = Number(number)

const { query } = pg.Client.prototype
pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
  const isIt = typeof given[0] === 'string' && new RegExp(pattern).test(`${given[0]} ${given[1] ?? ''}`)
  if (isIt && --left === 0) process.kill(process.pid, 'SIGSTOP')
  return Reflect.apply(query, this, given)
} as typeof query

const shards = readShards(folder)
try {
  await move({ organization: 'shop', from: shardNamed(shards, from), to: shardNamed(shards, to), say: () => {} })
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
