// Lists at any size: every page that the interface describes comes straight from an index, in the index's order; and no
// index is kept up to date by imports that nobody needs.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { KINDS } from '../../../src/core/records/records.ts'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { createOrganization } from '../../../src/core/tenants/tenants.ts'
import { type Caught, explain, watched } from '../../support/plans.ts'
import { type Json, ok, startTestServer, type TestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { describeServer } from './description.ts'
import { casesOf, faultsOf, isList, type PlanCase, REPORT_CASES } from './plan-cases.ts'
import { addSmallProjects, fillSkewed, uuidOf } from './skewed.ts'

/** Not what the server writes in the background. */
const isPage = ({ text }: Caught) => /^\s*select.+order by/s.test(text)

let caught: Caught[] = []
const view = (db: TestServer['db']) => watched(db, (one) => caught.push(one))
const server = await startTestServer({ RATE_LIMIT: '0' }, { worker: false }, view)
after(() => server.stop())
const { secret_key: organizationKey } = await createOrganization(server.db, server.app.seal, { id: 'skewed' })
const project = await server.project('skewed')
await fillSkewed(server.db, project)

describe('the plans of all lists', () => {
  /** By index, what used it first. */
  const uses = new Map<string, string>()
  test('of a large project alone', () => checkAll())

  test('of a large project with few products, which are read at once', async () => {
    await server.db.query(`delete from products where id not in ('product-1', 'product-rare')`)
    await server.db.query('analyze')
    await checkAll((table) => table === 'subscriptions')
  })

  test('of a large project among many small ones', async () => {
    await addSmallProjects(server.db, project.organizationId)
    await checkAll()
  })

  test('of every page of an export', async () => {
    const pages = (await catching(() => project.get('/export'))).filter(isPage)
    const tables = new Set<string>()
    for (const one of pages) {
      const table = /from \(\s*select \* from (\w+)/.exec(one.text)![1]!
      // The first pages of each kind tell it; the others are the same statement.
      if (tables.has(table) && one !== pages.at(-1)) continue
      tables.add(table)
      assert.deepEqual(faultsOf({ path: '', table, filters: {}, limit: 200 }, await explain(server.db, one, true)), [])
    }
    assert.equal(tables.size, 8)
  })

  test('a page with the whole list needs no count, and a list of one person a short one', async () => {
    const changed = { 'updated_at.from': '2025-12-30T00:00:00Z', 'updated_at.to': '2025-12-30T06:00:00Z' }
    const ask = async (filters: PlanCase['filters'], limit: number) => {
      let body: Json
      const statements = await catching(async () => {
        body = await page({ path: '/public/v1/subscriptions', table: 'subscriptions', filters, limit })
      })
      return { body, counts: statements.filter(({ text }) => text.includes('count(*)')).length }
    }
    const whole = await ask(changed, 500)
    assert.deepEqual([whole.counts, whole.body.pagination.total], [0, whole.body.data.length])
    const part = await ask(changed, 20)
    assert.deepEqual([part.counts, part.body.pagination.total], [1, whole.body.data.length])
    const person = await ask({ profile_id: 'pro-7' }, 20)
    assert.equal(person.counts, 1)
    assert.ok(person.body.pagination.total > 90)
  })

  test('one filter is prepared, combinations are not: each connection would keep the plans of all', async () => {
    const ask = (filters: PlanCase['filters']) =>
      catching(() => page({ path: '/public/v1/subscriptions', table: 'subscriptions', filters, limit: 50 }))
    const named = (statements: Caught[]) =>
      statements.filter(({ text, name }) => text.includes('from subscriptions') && name !== undefined).length
    const one = await ask({ status: 'active' })
    assert.ok(named(one) > 0)
    const several = await ask({ status: 'active', psp: 'stripe', funnel_id: 'funnel-1' })
    assert.equal(named(several), 0, JSON.stringify(several))
  })

  test('every index of the imported tables is used', async () => {
    for (const [what, ask] of Object.entries(OTHER_USES)) await note(what, await catching(ask))
    const tables = [...new Set(KINDS.map(({ table }) => table)), 'counts']
    const indexes = await server.db.query(
      `select indexrelid::regclass::text as name from pg_index i
       where indrelid = any($1::text[]::regclass[]) and not exists (select from pg_constraint where conindid = i.indexrelid)`,
      [tables],
    )
    assert.ok(indexes.length > 20)
    const idle = indexes.map(({ name }) => name!).filter((name) => !uses.has(name))
    assert.deepEqual(idle, [], `not used: ${idle}; used: ${JSON.stringify([...uses], undefined, 1)}`)
  })

  /** What needs an index and is no list. */
  const OTHER_USES: Record<string, () => Promise<unknown>> = {
    'a sweep of the counts': async () => {
      const { sweepCounts } = await import('../../../src/core/lists/counts.ts')
      const stop = sweepCounts({ ...server.app, db: watched(server.db, (one) => caught.push(one)) })
      await until('the sweep to ask', () => caught.length > 0)
      await stop()
    },
    'the end of cancelled subscriptions': async () => {
      const { expireSubscriptions } = await import('../../../src/data/ingest/expire.ts')
      const stop = expireSubscriptions({ ...server.app, db: watched(server.db, (one) => caught.push(one)) })
      await until('the search for due ones', () => caught.length > 0)
      await stop()
    },
    'the folding of e-mail addresses of earlier versions': async () => {
      const { foldBatch } = await import('../../../src/core/records/folded-emails.ts')
      await foldBatch(watched(server.db, (one) => caught.push(one)))
    },
    'an erasure': () => project.post('/profiles/anonymize', { profile_ids: ['pro-11'] }),
    'the saved card of a charge': async () => {
      await server.db.query('update organizations set one_off_charge_enabled = true')
      const body = { external_id: 'customer 5', amount: 1, currency_code: 'USD', idempotency_key: 'key' }
      return server.call('/skewed/v1/payment/one_off_charge', withKey(body))
    },
    "an operator's search": async () => {
      const { key } = await server.db.tx((query) => createOperator(query, { name: 'test', scope: 'read' }))
      const headers = { authorization: `Bearer ${key}` }
      await fetch(`${server.adminUrl}/admin/v1/search?q=person9@example.com`, { headers })
    },
    'a search by a word of an address': async () => {
      const { key } = await server.db.tx((query) => createOperator(query, { name: 'words', scope: 'read' }))
      const headers = { authorization: `Bearer ${key}` }
      const found = await fetch(`${server.adminUrl}/admin/v1/search?q=person9`, { headers })
      assert.equal(found.status, 200)
    },
    'a finance report after a closed month': async () => {
      const { key } = await server.db.tx((query) => createOperator(query, { name: 'finance', scope: 'write' }))
      const ask = async (path: string, init: RequestInit = {}) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
        const { status } = await fetch(`${server.adminUrl}/admin/v1/organizations/skewed/finance${path}`, {
          headers,
          ...init,
        })
        assert.equal(status, 200, path)
      }
      await ask('/months', { method: 'POST', body: JSON.stringify({ month: '2015-01' }) })
      // Plans go by statistics, which the fill may lack.
      await server.db.query('analyze report_transactions')
      await ask(`?month=${new Date().toISOString().slice(0, 7)}`)
    },
    'the lists of people with an address and without one': async () => {
      const { key } = await server.db.tx((query) => createOperator(query, { name: 'people', scope: 'read' }))
      const headers = { authorization: `Bearer ${key}` }
      for (const anonymous of [false, true]) {
        const url = `${server.adminUrl}/admin/v1/projects/${project.id}/profiles?anonymous=${anonymous}`
        assert.equal((await fetch(url, { headers })).status, 200)
      }
    },
    'the page of a person': async () => {
      const { key } = await server.db.tx((query) => createOperator(query, { name: 'person', scope: 'read' }))
      const headers = { authorization: `Bearer ${key}` }
      const { status } = await fetch(`${server.adminUrl}/admin/v1/projects/${project.id}/profiles/pro-12`, { headers })
      assert.equal(status, 200)
    },
    'the figures of a day': async () => {
      const { compute } = await import('../../../src/data/figures/compute.ts')
      const { families } = await import('../../../src/data/figures/families.ts')
      const day = new Date().toISOString().slice(0, 10)
      await watched(server.db, (one) => caught.push(one)).tx(async (query) => {
        for (const { name } of families) await compute(query, project.id, name, { from: day, to: day })
      })
    },
  }

  async function checkAll(chosen = (_table: string) => true): Promise<void> {
    const { operations } = await describeServer(server)
    const lists = operations.filter(isList)
    assert.equal(lists.length, 11)
    const wrong: string[] = []
    const check = async (one: PlanCase, statements: Caught[], place: string) => {
      const pages = statements.filter(isPage)
      assert.equal(pages.length, 1, JSON.stringify(statements))
      await note(JSON.stringify(one), statements)
      const faults = faultsOf(one, await explain(server.db, pages[0]!, true))
      if (faults.length > 0) wrong.push(`${JSON.stringify(one)}, ${place}: ${faults.join(', ')}`)
    }
    for (const one of lists.flatMap(casesOf).filter(({ table }) => chosen(table))) {
      await check(one, await catching(() => page(one)), 'first')
      const { next_cursor: cursor } = (await page({ ...one, limit: 1 })).pagination
      if (cursor) await check(one, await catching(() => page(one, cursor)), 'later')
    }
    for (const one of REPORT_CASES) await check(one, await catching(() => report(one)), 'later')
    assert.deepEqual(wrong, [])
  }

  async function catching(ask: () => Promise<unknown>): Promise<Caught[]> {
    caught = []
    await ask()
    return caught.filter(({ text }) => /^\s*(select|with|insert|update|delete)/i.test(text))
  }

  async function note(what: string, statements: Caught[]): Promise<void> {
    for (const statement of statements) {
      const nodes = await explain(server.db, statement)
      for (const { 'Index Name': index } of nodes) if (index && !uses.has(index)) uses.set(index, what)
    }
  }

  async function page({ path, filters, limit }: PlanCase, cursor?: string) {
    const query = new URLSearchParams({ limit: String(limit), ...(cursor && { cursor }) })
    for (const [name, value] of Object.entries(filters)) query.set(`filter[${name}]`, value)
    const url = `${path.replace('{org_id}', 'skewed')}?${query}`
    const headers = ['Service-Secret', project.key, 'service-secret-key', organizationKey]
    return ok(server.call(url, { headers }))
  }

  async function report({ filters, limit }: PlanCase): Promise<void> {
    const ids = Object.fromEntries(Object.entries(filters).map(([name, n]) => [name, uuidOf(n)]))
    const body = { last_transaction_date: '2025-12-01T00:00:00Z', limit, ...ids }
    await ok(server.call('/skewed/v1/transaction_report', withKey(body)))
  }

  const withKey = (body: object) => ({ method: 'POST', headers: ['service-secret-key', organizationKey], body })
})
