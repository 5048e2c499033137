// Lines about records that are stored already: which one wins, what it replaces, and when it changes nothing.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { allWritten, line, openImports, uuid } from '../../support/imports.ts'

const imports = await openImports()
after(() => imports.stop())

describe('a line about a stored record', () => {
  const at = (second: number) => `2026-02-01T00:00:0${second}.000000Z`
  const stored = (second: number) => `2026-02-01 00:00:0${second}+00`

  test('is skipped when it is older, and wins when it is as old or newer', async () => {
    const project = await imports.project()
    const put = (phone: string, updated_at: string) => imports.run(project, [line.profile({ phone, updated_at })])
    await put('first', at(5))
    assert.deepEqual(await put('older', at(4)), { ...allWritten(0), read: 1, skipped: 1 })
    assert.equal(await imports.column(project, 'profiles', 'phone', 'profile'), 'first')
    assert.deepEqual(await put('same', at(5)), allWritten(1))
    assert.equal(await imports.column(project, 'profiles', 'phone', 'profile'), 'same')
    await put('newer', at(6))
    assert.equal(await imports.column(project, 'profiles', 'updated_at', 'profile'), stored(6))
  })

  test('is compared with the time its source gave, not with the stamp of a live import', async () => {
    const project = await imports.project()
    const put = (phone: string, updated_at: string) =>
      imports.run(project, [line.profile({ phone, updated_at })], { live: true })
    await put('first', at(5))
    // Stamped long after at(6), which is a change all the same.
    assert.deepEqual(await put('second', at(6)), allWritten(1))
    assert.equal(await imports.column(project, 'profiles', 'phone', 'profile'), 'second')
    const stamp = await imports.column(project, 'profiles', 'updated_at', 'profile')
    await put('second', at(8))
    assert.equal(await imports.column(project, 'profiles', 'updated_at', 'profile'), stamp)
    assert.deepEqual(await put('older', at(7)), { ...allWritten(0), read: 1, skipped: 1 })
  })

  test('replaces all of its fields', async () => {
    const project = await imports.project()
    await imports.run(project, [line.profile({ email: 'A@x', phone: '1', updated_at: at(1) })])
    await imports.run(project, [line.profile({ phone: '2', updated_at: at(2) })])
    const row = await imports.row('select email, email_folded, phone from profiles where project_id = $1', [project.id])
    assert.deepEqual(row, { email: null, email_folded: null, phone: '2' })
  })

  test('without a time stamps the record with the present time, also when it is repeated', async () => {
    const project = await imports.project()
    const begin = await imports.now()
    await imports.run(project, [line.profile({ phone: '1' })])
    const first = (await imports.column(project, 'profiles', 'updated_at', 'profile'))!
    assert.ok(first >= begin)
    await imports.run(project, [line.profile({ phone: '2' })])
    const second = (await imports.column(project, 'profiles', 'updated_at', 'profile'))!
    assert.ok(second > first && second <= (await imports.now()))
  })

  test('that changes nothing leaves the record and its stamp as they are', async () => {
    const project = await imports.project()
    const lines = [
      line.profile({ email: 'a@x', integrations: { a: 1 } }),
      line.product({ prices: [] }),
      line.payment({ trx_id: uuid(900) }),
    ]
    await imports.run(project, lines)
    const versions = () =>
      imports.rows(
        `select updated_at, xmin from profiles where project_id = $1 union all select updated_at, xmin from products where project_id = $1
         union all select updated_at, xmin from report_transactions where organization_id = $2`,
        [project.id, project.organizationId],
      )
    const stamps = async () => (await versions()).map(({ updated_at }) => updated_at)
    const before = await stamps()
    for (const live of [false, true])
      assert.deepEqual(await imports.run(project, lines, { live }), { ...allWritten(0), read: 3, unchanged: 3 })
    assert.deepEqual(await stamps(), before)
  })

  test('that comes twice in one file wins by time, then by place', async () => {
    const project = await imports.project()
    const phone = (phone: string, id: string, second?: number) =>
      line.profile({ id, phone, ...(second !== undefined && { updated_at: at(second) }) })
    await imports.run(project, [phone('stored', 'd', 5)])
    const result = await imports.run(project, [
      phone('1', 'a', 3),
      phone('2', 'a', 2),
      phone('3', 'a', 3),
      phone('1', 'b', 1),
      phone('2', 'b', 2),
      phone('1', 'c', 1),
      phone('2', 'c'),
      phone('3', 'c', 9),
      phone('1', 'd', 4),
      phone('2', 'd', 6),
      phone('3', 'd', 3),
    ])
    assert.deepEqual(result, { ...allWritten(7), read: 11, skipped: 4 })
    const phones = await imports.rows('select id, phone from profiles where project_id = $1 order by id', [project.id])
    assert.deepEqual(
      phones.map(({ id, phone }) => `${id}${phone}`),
      ['a3', 'b2', 'c2', 'd2'],
    )
  })

  test('of a reply is found by session, screen and element; of a merchant account by provider and id', async () => {
    const project = await imports.project()
    const reply = (element: string, value: string) => line.reply({ element: { id: element, type: 'Input' }, value })
    await imports.run(project, [
      line.profile(),
      line.session(),
      reply('a', '1'),
      reply('b', '1'),
      line.merchant_account({ region: 'eu' }),
    ])
    assert.deepEqual(
      await imports.run(project, [reply('a', '2'), reply('a', '3'), line.merchant_account({ region: 'us' })]),
      allWritten(3),
    )
    const values = await imports.rows('select element_id, value from replies where project_id = $1 order by 1', [
      project.id,
    ])
    assert.deepEqual(values, [
      { element_id: 'a', value: '"3"' },
      { element_id: 'b', value: '"1"' },
    ])
    const accounts = await imports.rows('select region from merchant_accounts where organization_id = $1', [
      project.organizationId,
    ])
    assert.deepEqual(accounts, [{ region: 'us' }])
  })
})
