// Records that the JavaScript client writes through a firewall: what it refuses is told, and the rest is written.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Tundish, type TundishError } from '../../clients/js/src/index.ts'
import { startTestServer } from '../support/server.ts'

const created_at = '2026-01-31T09:00:00Z'
const server = await startTestServer()
after(() => server.stop())

/** A client behind a firewall that refuses the bodies that `isRefused`, and what it told. */
async function behindFirewall(isRefused: (body: string) => boolean, refusal: () => Response) {
  const project = await server.project()
  const rejected: [unknown, string, string][] = []
  const errors: number[] = []
  let calls = 0
  const tundish = new Tundish({
    url: server.url,
    projectKey: project.key,
    ingest: {
      onRejected: ({ record, code, reason }) => rejected.push([record.data['id'], code, reason]),
      onError: (error) => errors.push((error as TundishError).status),
    },
    fetch: async (input, init) => {
      calls += 1
      return isRefused(String(init?.body)) ? refusal() : fetch(input, init)
    },
  })
  return { tundish, project, rejected, errors, calls: () => calls }
}

test('a record that a firewall refuses is rejected, and the others are written in their order', async () => {
  const page = '<html>Request blocked</html>'
  const refusals: [number, () => Response][] = [
    ...[400, 401, 403, 404, 406, 413, 415, 451].map(
      (status) => [status, () => new Response(page, { status })] as [number, () => Response],
    ),
    [403, () => Response.json({ message: 'Forbidden' }, { status: 403 })],
    [302, () => new Response('', { status: 302, headers: { location: '/blocked' } })],
  ]
  for (const [status, refusal] of refusals) {
    const { tundish, project, rejected, errors, calls } = await behindFirewall((body) => /; ls/.test(body), refusal)
    for (let n = 0; n < 20; n += 1) {
      tundish.identify({ id: 'ada', created_at, phone: n % 10 === 5 ? `${n}; ls -la` : String(n) })
      tundish.identify({ id: `p${n}`, created_at })
    }
    await tundish.flush({ timeoutMs: 60_000 })
    const told = ['ada', 'refused_by_proxy', `A proxy or firewall refused it with status ${status}.`]
    assert.deepEqual([rejected, errors], [[told, told], []], String(status))
    assert.equal((await project.get('/profiles/ada')).body.phone, '19')
    assert.equal((await project.get('/profiles')).body.pagination.total, 21)
    assert.ok(calls() < 50, `${calls()} calls`)
  }
})

test('a firewall that refuses large calls only, or now and then, rejects nothing', async () => {
  const large = await behindFirewall(
    (body) => body.length > 2000,
    () => new Response('', { status: 403 }),
  )
  for (let n = 0; n < 100; n += 1) large.tundish.identify({ id: `p${n}`, created_at })
  await large.tundish.flush()
  assert.equal((await large.project.get('/profiles')).body.pagination.total, 100)
  let isFirst = true
  const moody = await behindFirewall(
    () => isFirst,
    () => {
      isFirst = false
      return new Response('', { status: 403 })
    },
  )
  moody.tundish.identify({ id: 'ada', created_at })
  await moody.tundish.flush()
  assert.equal((await moody.project.get('/profiles/ada')).status, 200)
  assert.deepEqual([...large.rejected, ...moody.rejected, ...large.errors, ...moody.errors], [])
})

test('a firewall that refuses everything loses no record: they are sent when it lets them pass', async () => {
  let isClosed = true
  const refusal = () => new Response('<html>Access denied</html>', { status: 403 })
  const { tundish, project, rejected, errors, calls } = await behindFirewall(() => isClosed, refusal)
  for (let n = 0; n < 20; n += 1) tundish.identify({ id: 'ada', created_at, phone: String(n) })
  await assert.rejects(tundish.flush(), { name: 'TundishError', status: 403, code: '' })
  assert.deepEqual([calls(), errors], [2, [403]])
  isClosed = false
  await tundish.flush()
  assert.deepEqual([(await project.get('/profiles/ada')).body.phone, rejected], ['19', []])
})

test('a flush is not refused by a firewall while the server is away for a moment', async () => {
  let status = 403
  let isAway = true
  const { tundish, rejected, errors } = await behindFirewall(
    (body) => {
      const isBad = /; ls/.test(body)
      status = isBad ? 403 : 502
      const isRefused = isBad || isAway
      isAway &&= isBad
      return isRefused
    },
    () => new Response('', { status }),
  )
  tundish.identify({ id: 'ada', created_at, phone: '; ls' })
  await tundish.flush({ timeoutMs: 60_000 })
  assert.deepEqual([rejected.length, errors], [1, [502]])
})

test('a proxy that alters calls, so that Tundish refuses them, loses no record', async () => {
  const project = await server.project()
  const rejected: unknown[] = []
  let calls = 0
  const fetchAltered: typeof fetch = (input, init) => {
    calls += 1
    return fetch(calls < 3 ? `${input}&cache=${calls}` : input, init)
  }
  const onRejected = ({ code }: { code: string }) => rejected.push(code)
  const ingest = { onRejected, onError: () => {} }
  const tundish = new Tundish({ url: server.url, projectKey: project.key, ingest, fetch: fetchAltered })
  tundish.identify({ id: 'ada', created_at })
  await assert.rejects(tundish.flush(), { status: 400, code: 'unknown_parameter' })
  await tundish.flush()
  assert.deepEqual(rejected, [])
  assert.equal((await project.get('/profiles/ada')).status, 200)
})
