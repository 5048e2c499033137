// GET /export: everything that changed in a window, a line each, in one response that can be resumed.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { BASICS, insert } from '../../support/data.ts'
import { type Json, type Project, startTestServer } from '../../support/server.ts'
import { walk } from '../../support/walk.ts'

const AT = '2026-01-02T03:04:05.000006Z'
const PROFILES = 450

const server = await startTestServer()
after(() => server.stop())

describe('the export', () => {
  let project: Project
  before(async () => {
    project = await server.project()
    const refers = { profile_id: 'profile', funnel_id: 'funnel', session_id: 'session', experiment_id: 'experiment' }
    await insert(server.db, project, {
      ...BASICS,
      funnels: [{ id: 'funnel' }, { id: 'gone', deleted_at: AT }],
      profiles: [{ id: 'profile' }, ...Array.from({ length: PROFILES }, (_, n) => ({ id: `p-${n}` }))],
      replies: [{ session_id: 'session', value: ['a', 'b'] }],
      subscriptions: [{ id: 'subscription', product_id: 'product', ...refers }],
      transactions: [{ id: 'transaction', subscription_id: 'subscription', ...refers }],
    })
  })
  async function lines(query: Record<string, string> = {}): Promise<Json[]> {
    const { status, text, headers } = await project.get('/export', query)
    assert.equal(status, 200, text)
    assert.match(String(headers['content-type']), /^application\/x-ndjson/)
    assert.ok(text.endsWith('\n'))
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  }

  const records = (all: Json[]) => all.filter(({ record }) => record !== undefined)
  const ids = (all: Json[], kind: string) =>
    all.flatMap(({ record, data }) => (record === kind ? [data.id ?? data.session_id] : []))

  test('every kind in full, in the order of references, the horizon last', async () => {
    const all = await lines()
    const kinds = [...new Set(records(all).map(({ record }) => record))]
    assert.deepEqual(
      kinds,
      'funnel experiment product profile session session_replies subscription transaction'.split(' '),
    )
    assert.deepEqual(ids(all, 'funnel').sort(), ['funnel', 'gone'])
    assert.equal(new Set(ids(all, 'profile')).size, PROFILES + 1)
    assert.deepEqual(ids(all, 'session_replies'), ['session'])
    const of = (kind: string) => records(all).find(({ record }) => record === kind)!.data
    assert.deepEqual(of('subscription'), (await project.get('/subscriptions/subscription')).body)
    assert.deepEqual(of('session_replies').replies, (await project.get('/sessions/session/replies')).body)
    const { subscription_id, updated_at, ...listed } = of('transaction')
    assert.deepEqual([subscription_id, updated_at], ['subscription', AT])
    assert.deepEqual([listed], await walk(project, '/transactions'))
    assert.match(all.at(-1).horizon, /^20\d\d-.+Z$/)
  })

  test('successive windows have each record once', async () => {
    const [first, second] = [await lines({ to: AT }), await lines({ from: AT })]
    assert.deepEqual([records(first).length, first.at(-1)], [0, { horizon: AT }])
    assert.equal(records(second).length, records(await lines()).length)
    assert.deepEqual(records(await lines({ from: second.at(-1).horizon })), [])
    const changed = `update profiles set updated_at = db_clock() where project_id = $1 and id = 'p-7'`
    await server.db.query(changed, [project.id])
    await server.db.query('select begin_write($1)', [project.id])
    const until = async () => (await lines({ from: second.at(-1).horizon })) as Json[]
    let third = await until()
    while (records(third).length === 0) third = await until()
    assert.deepEqual(ids(third, 'profile'), ['p-7'])
  })

  test('a cursor resumes after the lines before it, in the window of the first response', async () => {
    const whole = await lines()
    const cuts = whole.flatMap(({ cursor }, n) => (cursor === undefined ? [] : [n]))
    assert.ok(cuts.length > 8)
    for (const cut of cuts) {
      const rest = await lines({ cursor: whole[cut].cursor })
      assert.deepEqual(rest, whole.slice(cut + 1))
    }
  })

  test('400 for a cursor of another window, of another project, or changed', async () => {
    const cursor = (await lines()).find((line) => line.cursor).cursor as string
    const other = await server.project()
    for (const response of [
      await project.get('/export', { cursor, from: AT }),
      await other.get('/export', { cursor }),
      await project.get('/export', { cursor: `${cursor}x` }),
      await project.get('/export', { cursor: cursor.replace(/^\d/, '9') }),
    ]) {
      assert.equal(response.status, 400)
      assert.equal(response.headers['x-error-code'], 'invalid_cursor')
    }
  })

  test('text/plain with the same lines for a client that accepts no other type', async () => {
    const asked = (accept: string) => server.api('/export', { key: project.key, headers: ['Accept', accept] })
    const plain = await asked('text/plain')
    assert.equal(plain.headers['content-type'], 'text/plain; charset=utf-8')
    assert.equal(plain.text.split('\n').length, (await lines()).length + 1)
    for (const accept of ['*/*', 'application/x-ndjson, text/plain'])
      assert.equal((await asked(accept)).headers['content-type'], 'application/x-ndjson')
  })

  test('HEAD responds without reading a record, and without a length, as GET does', async () => {
    const { status, text, headers } = await server.api('/export', { method: 'HEAD', key: project.key })
    assert.deepEqual([status, text, headers['content-length']], [200, '', undefined])
  })
})

describe('the lists of experiments and replies', () => {
  let project: Project
  before(async () => {
    project = await server.project()
    const numbers = Array.from({ length: 45 }, (_, n) => n)
    const stamp = (n: number) => `2026-01-01T00:00:00.0000${String(n % 30).padStart(2, '0')}Z`
    await insert(server.db, project, {
      funnels: [{ id: 'funnel' }],
      profiles: [{ id: 'profile' }],
      experiments: numbers.map((n) => ({ id: `e-${n}`, created_at: stamp(n), updated_at: stamp(44 - n) })),
      sessions: numbers.map((n) => ({ id: `s-${n}`, funnel_id: n % 3 === 0 ? 'funnel' : null, updated_at: stamp(n) })),
      replies: [3, 6].map((n) => ({ session_id: `s-${n}`, value: `answer ${n}` })),
    })
  })
  for (const path of ['/experiments', '/replies']) {
    test(`${path}: newest first and by windows, every item once`, async () => {
      const all = await walk(project, path, { limit: '7' })
      assert.equal(all.length, 45)
      const middle = '2026-01-01T00:00:00.000015Z'
      const before = await walk(project, path, { 'filter[updated_at.to]': middle, limit: '7' })
      const after = await walk(project, path, { 'filter[updated_at.from]': middle, limit: '7' })
      assert.ok(before.length > 0 && after.length > 0)
      const names = (items: Json[]) => items.map(({ id, session_id }) => id ?? session_id).sort()
      assert.deepEqual(names([...before, ...after]), names(all))
      assert.ok(before.every(({ updated_at }) => updated_at < middle))
    })
  }

  test('replies come with their session, and by funnel', async () => {
    const items = await walk(project, '/replies', { 'filter[funnel_id]': 'funnel', limit: '100' })
    assert.equal(items.length, 15)
    const answered = items.filter(({ replies }) => replies.length > 0)
    assert.deepEqual(answered.map(({ session_id, replies }) => [session_id, replies[0].state.value]).sort(), [
      ['s-3', 'answer 3'],
      ['s-6', 'answer 6'],
    ])
  })
})
