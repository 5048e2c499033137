// An export of the old shard that a move overtakes: it breaks off, and continues on the new shard without a gap.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { after, test } from 'node:test'
import { move } from '../../src/operations/shards/move.ts'
import { type ServerProcess, startProcess } from '../support/cli.ts'
import type { Json } from '../support/server.ts'
import { type Side, setUpPair } from './pair.ts'

const servers = {} as Record<Side, ServerProcess>
const { clusters, shops, between, numberOf } = setUpPair({
  ready: async (side, env) => {
    servers[side] = await startProcess(env)
  },
})
after(async () => {
  for (const server of Object.values(servers)) await server.stop()
})

// More than what the buffers of the connection hold.
const SESSIONS = 20_000

async function begin(at: Side, cursor?: string): Promise<IncomingMessage> {
  const path = `/public/v1/export${cursor === undefined ? '' : `?cursor=${encodeURIComponent(cursor)}`}`
  const request = get(`${servers[at].url}${path}`, { headers: { 'Service-Secret': shops.a.projectKey } })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  return response
}

/** The rest of an export, and whether it is complete. */
async function readAll(response: IncomingMessage): Promise<{ lines: Json[]; complete: boolean }> {
  let text = ''
  response.setEncoding('utf8').on('data', (piece) => (text += piece))
  // Emitted when it breaks off.
  response.on('error', () => {})
  await new Promise((resolve) => response.on('close', resolve))
  const whole = text.slice(0, text.lastIndexOf('\n')).split('\n')
  return { lines: whole.map((line) => JSON.parse(line)), complete: response.complete }
}

test('an export that the move overtakes is incomplete, and continues on the new shard', async () => {
  await clusters.a.query(`
    insert into sessions (project_id, id, created_at, updated_at, profile_id, origin, user_agent, query_params)
    select 'shop-app', 'session-' || n, at, at, 'user-0', 'https://example.com/', repeat('Mozilla/5.0 ', 100), '{}'
    from generate_series(1, ${SESSIONS}) n, lateral (select db_clock() - make_interval(secs => 5 + n) as at) stamped`)
  const first = await begin('a')
  await move({ ...between('a', 'b'), say: () => {} })
  const { lines, complete } = await readAll(first)
  assert.equal(complete, false)
  assert.equal(lines.at(-1).horizon, undefined)
  const { cursor } = lines.findLast((line) => line.cursor !== undefined)!
  const second = await begin('b', cursor)
  // A copy would take a project that was created anew for another one.
  assert.equal(second.headers['x-project-created-at'], first.headers['x-project-created-at'])
  const rest = await readAll(second)
  assert.equal(rest.complete, true)
  const sessions = [...lines, ...rest.lines].flatMap(({ record, data }) => (record === 'session' ? [data.id] : []))
  assert.equal(sessions.length, await numberOf('b', `sessions where project_id = 'shop-app'`))
  assert.equal(new Set(sessions).size, sessions.length)
})
