// Payments: their customers, the instants of the report, and what belongs to another project or to Tundish itself.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { line, openImports, type Project, uuid } from '../../support/imports.ts'
import { column } from '../../support/rows.ts'

const imports = await openImports()
after(() => imports.stop())

const at = (micros: number) => `2026-01-02T00:00:00.${String(micros).padStart(6, '0')}Z`

/** The rows of the report as `number@microseconds`, in their order. */
async function report({ organizationId }: Project): Promise<string[]> {
  const rows = await imports.rows(
    `select right(trx_id::text, 12)::bigint as n, extract(microseconds from trx_created_at)::bigint as at
     from report_transactions where organization_id = $1 order by trx_created_at`,
    [organizationId],
  )
  return rows.map(({ n, at }) => `${n}@${at}`)
}

const paid = (n: number, micros: number, more: object = {}) =>
  line.payment({ trx_id: uuid(n), trx_created_at: at(micros), ...more })

test('a payment makes its customer, of the importing project; one that is there stays', async () => {
  const project = await imports.project()
  await imports.run(project, [
    line.customer({ external_id: 'known', email: 'a@x' }),
    line.payment({ external_id: 'known' }),
    line.payment({ external_id: 'new' }),
  ])
  const customers = await imports.rows(
    'select external_id, email, project_id from customers where organization_id = $1 order by 1',
    [project.organizationId],
  )
  assert.deepEqual(customers, [
    { external_id: 'known', email: 'a@x', project_id: project.id },
    { external_id: 'new', email: null, project_id: project.id },
  ])
})

test('a payment makes no transaction of the data API', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile(), line.customer({ profile_id: 'profile' }), line.payment()])
  assert.deepEqual(await imports.rows('select 1 from transactions where project_id = $1', [project.id]), [])
})

test('a customer of another project of the organization is refused, with its payments; another organization may have it', async () => {
  const first = await imports.project()
  const second = await imports.project(first.organizationId)
  await imports.run(first, [line.customer(), line.payment({ trx_id: uuid(700) })])
  const reasons = (
    await imports.run(second, [
      line.customer(),
      line.payment(),
      line.payment({ external_id: 'own', trx_id: uuid(700) }),
    ])
  ).rejects
  assert.deepEqual(column(reasons, 'reason'), [
    'customer.external_id belongs to another project of the organization',
    'payment.external_id belongs to another project of the organization',
    'payment.trx_id belongs to another project of the organization',
  ])
  assert.equal(
    (await imports.run(await imports.project(), [line.customer(), line.payment({ trx_id: uuid(700) })])).written,
    2,
  )
})

test('ties are moved apart by microseconds in the order of their lines, also from rows that are there', async () => {
  const project = await imports.project()
  await imports.run(project, [paid(1, 5), paid(2, 5), paid(3, 4), paid(4, 6), paid(5, 100)])
  assert.deepEqual(await report(project), ['3@4', '1@5', '2@6', '4@7', '5@100'])
  await imports.run(project, [paid(6, 4), paid(7, 99), paid(8, 99), paid(9, 5)])
  assert.deepEqual(await report(project), ['3@4', '1@5', '2@6', '4@7', '6@8', '9@9', '7@99', '5@100', '8@101'])
})

test('900 payments at the same instant get an instant each, in the order of their lines', async () => {
  const project = await imports.project()
  const tied = (from: number) => Array.from({ length: 300 }, (_, n) => paid(from + n, 0))
  for (const from of [1000, 2000, 3000]) await imports.run(project, tied(from))
  const rows = await report(project)
  assert.deepEqual(
    rows,
    Array.from({ length: 900 }, (_, n) => `${1000 * (1 + Math.floor(n / 300)) + (n % 300)}@${n}`),
  )
})

test('any payments at equal times get an instant each, none before its own time', async () => {
  const instants = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 10 })
  await fc.assert(
    fc.asyncProperty(fc.array(instants, { minLength: 1, maxLength: 3 }), async (files) => {
      const project = await imports.project()
      const given = new Map<number, number>()
      for (const file of files) {
        const lines = file.map((micros) => {
          given.set(given.size + 1, micros)
          return paid(given.size, micros)
        })
        await imports.run(project, lines)
      }
      const rows = (await report(project)).map((row) => row.split('@').map(Number) as [number, number])
      assert.equal(rows.length, given.size)
      for (const [n, micros] of rows) assert.ok(micros >= given.get(n)!, `${n} at ${micros}`)
      const last = Math.max(...rows.map(([, micros]) => micros), 0)
      assert.ok(last <= 12 + given.size)
    }),
    { numRuns: 15 },
  )
})

test('a payment that comes again keeps its first instant, and takes the rest', async () => {
  const project = await imports.project()
  await imports.run(project, [paid(1, 5), paid(2, 5)])
  const again = [paid(2, 5, { amount: 3 }), paid(1, 50)]
  const first = await imports.run(project, again)
  assert.deepEqual([first.written, first.unchanged], [1, 1])
  assert.deepEqual(await report(project), ['1@5', '2@6'])
  const rows = await imports.rows(
    'select amount from report_transactions where organization_id = $1 order by trx_created_at',
    [project.organizationId],
  )
  assert.deepEqual(column(rows, 'amount'), ['10.00', '3.00'])
  assert.equal((await imports.run(project, again, { live: true })).unchanged, 2)
  assert.deepEqual(await report(project), ['1@5', '2@6'])
})

test('a row that Tundish wrote is skipped', async () => {
  const project = await imports.project()
  await imports.run(project, [paid(1, 5)])
  await imports.rows('update report_transactions set imported = false where organization_id = $1', [
    project.organizationId,
  ])
  const result = await imports.run(project, [paid(1, 5, { amount: 99 }), paid(1, 5, { amount: 98 })])
  assert.deepEqual([result.written, result.skipped], [0, 2])
  const { amount } = await imports.row('select amount from report_transactions where organization_id = $1', [
    project.organizationId,
  ])
  assert.equal(amount, '10.00')
})

test('live payments are stamped after all stored ones, in the order of their times, and advance the clock', async () => {
  const project = await imports.project()
  await imports.rows(
    `update organization_clocks set last_trx_created_at = db_clock() + interval '1 hour' where organization_id = $1`,
    [project.organizationId],
  )
  const clock = async () =>
    (
      await imports.row('select last_trx_created_at as at from organization_clocks where organization_id = $1', [
        project.organizationId,
      ])
    ).at!
  const before = await clock()
  await imports.run(project, [paid(1, 9), paid(2, 3), paid(3, 3)], { live: true })
  const rows = await imports.rows(
    'select right(trx_id::text, 12)::bigint as n, trx_created_at as at from report_transactions where organization_id = $1 order by 2',
    [project.organizationId],
  )
  assert.deepEqual(column(rows, 'n'), ['2', '3', '1'])
  assert.ok(rows[0]!.at! > before)
  assert.equal(await clock(), rows[2]!.at)
})

test('a live payment waits for a charge that is settling, and is stamped after it', async () => {
  const project = await imports.project()
  const { query, release } = await imports.db.connect()
  await query('begin')
  const [clock] = await query(
    `update organization_clocks set last_trx_created_at = db_clock() + interval '1 minute' where organization_id = $1 returning last_trx_created_at as at`,
    [project.organizationId],
  )
  const importing = imports.run(project, [paid(1, 5)], { live: true })
  await new Promise((resolve) => setTimeout(resolve, 300))
  await query('commit')
  release()
  await importing
  const row = await imports.row('select trx_created_at as at from report_transactions where organization_id = $1', [
    project.organizationId,
  ])
  assert.ok(row.at! > clock!.at!)
})

test('charges are stamped after every imported payment, even one in the near future', async () => {
  const project = await imports.project()
  const soon = new Date(Date.now() + 200_000).toISOString()
  await imports.run(
    project,
    [1, 2, 3].map((n) => line.payment({ trx_id: uuid(n), trx_created_at: soon })),
  )
  const row = await imports.row(
    `select c.last_trx_created_at >= max(r.trx_created_at) as passed from organization_clocks c
     join report_transactions r using (organization_id) where organization_id = $1 group by c.last_trx_created_at`,
    [project.organizationId],
  )
  assert.equal(row.passed, 't')
})

test('a small import into empty tables gathers their statistics at once', async () => {
  const fresh = await openImports()
  try {
    const lines = Array.from({ length: 200 }, (_, n) => line.payment({ external_id: `c${n}`, trx_id: uuid(n) }))
    await fresh.run(await fresh.project(), lines)
    const known = await fresh.rows(
      `select distinct tablename from pg_stats where tablename in ('customers', 'report_transactions') order by 1`,
    )
    assert.deepEqual(known, [{ tablename: 'customers' }, { tablename: 'report_transactions' }])
  } finally {
    await fresh.stop()
  }
})

test('small imports gather statistics of an organization that came after a large one', async () => {
  const [large, late] = [await imports.project(), await imports.project()]
  await imports.rows(
    `with paid as (select n, 'c' || n as customer, timestamptz '2026-01-01' + n * interval '1 second' as at from generate_series(1, 9000) n),
       customers as (insert into customers (organization_id, external_id, project_id, created_at, updated_at)
         select $1, customer, $2, at, at from paid)
     insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
       currency_code, status, psp, psp_transaction_type)
     select $1, customer, true, at, gen_random_uuid(), gen_random_uuid(), at, 1, 'USD', 'succeeded', 'elsewhere', 'sale' from paid`,
    [large.organizationId, large.id],
  )
  for (const table of ['customers', 'report_transactions']) await imports.rows(`analyze ${table}`)
  for (let part = 0; part < 4; part++)
    await imports.run(
      late,
      Array.from({ length: 400 }, (_, n) =>
        line.payment({ external_id: `late-${part}-${n}`, trx_id: uuid(part * 1000 + n) }),
      ),
    )
  const known = await imports.rows(
    `select tablename from pg_stats where attname = 'organization_id' and $1 = any(most_common_vals::text::text[])
       and tablename in ('customers', 'report_transactions') order by 1`,
    [late.organizationId],
  )
  assert.deepEqual(known, [{ tablename: 'customers' }, { tablename: 'report_transactions' }])
})
