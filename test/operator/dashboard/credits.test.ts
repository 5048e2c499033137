// Credits in the dashboard: a person's, with the forms that grant and correct, and the organization's figures with the entries behind them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openDb } from '../../../src/lib/pg/db.ts'
import { addUnit, stopChecked } from '../../support/credits.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { addRow, insert } from '../../support/data.ts'
import { untilLocked } from '../../support/database.ts'
import { column } from '../../support/rows.ts'
import { setNoon } from '../../support/time.ts'
import { rowsOf } from './page-numbers.ts'

const dashboard = await startDashboard()
const today = await setNoon(dashboard.server.env.DATABASE_URL!)
const cookie = await dashboard.signInAs('write')
const { server, project } = dashboard
const [row] = await server.db.query('select organization_id as id from projects where id = $1', [project.id])
const organization = row!.id!
await insert(
  server.db,
  { id: project.id, organizationId: organization },
  { profiles: [{ id: 'ada' }], customers: [{ external_id: 'cus-ada', profile_id: 'ada' }] },
)
after(() => stopChecked(dashboard.server))

const see = async (path: string, status = 200) => {
  const response = await dashboard.visit(path, { cookie })
  assert.equal(response.status, status, response.text)
  return response.text
}
const send = (path: string, form: Record<string, string>) => dashboard.visit(path, { cookie, form })
const hidden = (html: string, action: string) =>
  /name="idempotency_key" value="([^"]+)"/.exec(html.split(`credits/${action}`)[1]!)![1]!

test('an organization without units is told what they are, and its people have no section', async () => {
  assert.match(await see('/credits'), /tundish credits unit create tokens/)
  assert.doesNotMatch(await see('/people/ada'), /Grant credits/)
})

test('the forms of a person grant and correct once, ask first, and are audited', async () => {
  const { db } = dashboard.server
  await addUnit(db, organization, 'tokens')
  const page = await see('/people/ada')
  assert.match(page, /No credits yet/)
  const form = { external_id: 'cus-ada', unit: 'tokens', amount: '100', expires_at: '2030-01-31' }
  const key = hidden(page, 'grant')
  for (let n = 0; n < 2; n++) {
    const sent = await send('/people/ada/credits/grant', { ...form, idempotency_key: key })
    assert.equal(sent.status, 303, sent.text)
  }
  const wrong = { ...form, amount: '1.5', idempotency_key: 'other' }
  const refused = await send('/people/ada/credits/grant', wrong)
  assert.deepEqual([refused.status, /no decimal places in tokens/.test(refused.text)], [400, true])
  const correction = {
    external_id: 'cus-ada',
    unit: 'tokens',
    amount: '-30',
    reason: 'Wrong grant',
    idempotency_key: 'c',
  }
  assert.equal((await send('/people/ada/credits/adjust', correction)).status, 303)
  const seen = await see('/people/ada?done=adjusted')
  assert.match(seen, /The balance was corrected\./)
  assert.deepEqual(rowsOf(seen, 'balances'), [['tokens', '70', '0', '70', '70', '31 Jan 2030, 23:59']])
  assert.deepEqual(
    rowsOf(seen, 'grants').map((row) => row.slice(1, 7)),
    [['tokens', '100', '70', '0', '0', '31 Jan 2030, 23:59']],
  )
  assert.deepEqual(
    rowsOf(seen, 'entries').map(([, , amount, , cause, balance, reason]) => [cause, amount, balance, reason]),
    [
      ['Adjustment', '-30', '70', 'Wrong grant'],
      ['Grant', '100', '100', ''],
    ],
  )
  const audited = await db.query(`select action from audit_log where action like 'credits.%' order by sequence`)
  assert.deepEqual(column(audited, 'action'), ['credits.granted', 'credits.granted', 'credits.adjusted'])
})

test('the page of the organization adds up, by unit and day, to the entries behind it', async () => {
  const { db } = dashboard.server
  await addRow(db, 'credit_top_ups', {
    ...{
      organization_id: organization,
      external_id: 'cus-ada',
      unit: 'tokens',
      status: 'off',
      off_reason: 'expired_card',
    },
    ...{ below: 50, amount: 9.99, currency_code: 'USD', grants: 100, most_per_day: 1, most_per_month: 5 },
  })
  const page = await see('/credits')
  assert.deepEqual(rowsOf(page, 'units'), [['tokens', '70', '100', '0', '0', '0', '-30', '0', '1']])
  assert.deepEqual(rowsOf(page, 'days'), [[today, 'tokens', '70', '100', '0', '0', '0', '-30', '2']])
  assert.match(page, /Debts are taken off what is outstanding\./, 'which is another sum than that by unit')
  assert.deepEqual(
    rowsOf(page, 'top-ups').map(([, unit, status, below, , charge, , , why]) => [unit, status, below, charge, why]),
    [['tokens', 'off', '50', '9.99', 'Expired card']],
  )
  assert.doesNotMatch(page, /Group by|Compare with/, 'the page has days only, and compares nothing')
  const countOf = async (query: string) => {
    const text = await see(`/credits?${query}`)
    return /<table id="entries">/.test(text) ? rowsOf(text, 'entries').length : 0
  }
  assert.equal(await countOf(`unit=tokens&day=${today}`), 2)
  assert.equal(await countOf('day=2020-01-01'), 0)
  assert.equal(await countOf('account=adjusted'), 1)
  await see('/credits?day=2020-02-31', 400)
  const removed = await send('/people/ada/credits/top-up', { external_id: 'cus-ada', unit: 'tokens' })
  assert.equal(removed.status, 303, removed.text)
  assert.match(await see('/credits'), /No customer has an automatic top-up/)
})

test('days before the present one have what was outstanding then', async () => {
  const { db } = dashboard.server
  await db.query(
    `update credit_entries set created_at = created_at - interval '40 days' where amount = 100 and organization_id = $1`,
    [organization],
  )
  const days = rowsOf(await see('/credits?period=90d'), 'days')
  assert.deepEqual(
    days.map((row) => row.slice(2)),
    [
      ['70', '0', '0', '0', '0', '-30', '1'],
      ['100', '100', '0', '0', '0', '0', '1'],
    ],
  )
  assert.equal(rowsOf(await see('/credits'), 'days').length, 1)
  await db.query(
    `update credit_entries set created_at = created_at + interval '40 days' where amount = 100 and organization_id = $1`,
    [organization],
  )
})

test('days are those of the finance report’s time zone, also of the entries behind one', async () => {
  const reporting = `/projects/${project.id}/reporting`
  const set = (time_zone: string) => server.admin(reporting, { method: 'PUT', body: { time_zone } })
  const move = (to: string) =>
    server.db.query(
      `update credit_entries set created_at = ${to} where amount = 100 and organization_id = $1 returning created_at`,
      [organization],
    )
  const [{ kept }] = (await server.db.query(
    'select created_at as kept from credit_entries where amount = 100 and organization_id = $1',
    [organization],
  )) as [{ kept: string }]
  assert.equal((await set('America/Sao_Paulo')).status, 200)
  // The last instant of September there, which is in October in UTC.
  await move(`'2025-10-01T02:59:59.999999Z'`)
  const page = await see('/credits?from=2025-09-30&to=2025-10-01')
  assert.deepEqual(rowsOf(page, 'days'), [['2025-09-30', 'tokens', '100', '100', '0', '0', '0', '0', '1']])
  assert.match(page, /Days in America\/Sao_Paulo\./)
  assert.equal(rowsOf(await see('/credits?day=2025-09-30'), 'entries').length, 1)
  assert.match(await see('/credits?day=2025-10-01'), /No entries\./)
  const { body } = await server.admin(`/organizations/${organization}/credits/days?from=2025-10-01&to=2025-10-01`)
  assert.deepEqual(body, { time_zone: 'America/Sao_Paulo', data: [] })
  await move(`'${kept}'`)
  assert.equal((await set('UTC')).status, 200)
})

test('a correction that meets its key in use for another unit is refused, not broken off', async () => {
  const { db, app } = dashboard.server
  await addUnit(db, organization, 'gold')
  const other = openDb({ url: app.databaseUrl, applicationName: 'another process', connections: 1 })
  const form = { external_id: 'cus-ada', unit: 'gold', amount: '5', reason: 'Race', idempotency_key: 'raced' }
  let sent: ReturnType<typeof send> | undefined
  await other.tx(async (query) => {
    await query(
      `insert into credit_keys (organization_id, external_id, idempotency_key, request, balance, held, created_at)
       values ($1, 'cus-ada', 'raced', '["spend","tokens","1"]', 0, 0, db_clock())`,
      [organization],
    )
    sent = send('/people/ada/credits/adjust', form)
    await untilLocked(db.query, 'credit_keys')
  })
  const { status, text } = await sent!
  await other.close()
  assert.deepEqual([status, /was used for another request/.test(text)], [400, true], text)
})

test('amounts have all the decimals of their unit', async () => {
  await addUnit(dashboard.server.db, organization, 'micro', 6)
  const form = { external_id: 'cus-ada', unit: 'micro', amount: '1234.000003', idempotency_key: 'micro' }
  assert.equal((await send('/people/ada/credits/grant', form)).status, 303)
  for (const path of ['/people/ada', '/credits'])
    assert.equal((await see(path)).match(/>1,234\.000003</g)?.length, 6, path)
})

test('blanks around what is typed or pasted are left out, those of the id of a customer are not', async () => {
  await insert(
    server.db,
    { id: project.id, organizationId: organization },
    { profiles: [{ id: 'bea' }], customers: [{ external_id: ' cus bea ', profile_id: 'bea' }] },
  )
  const account = { external_id: ' cus bea ', unit: 'tokens' }
  const grant = { ...account, amount: ' 5 ', expires_at: ' 31 Jan 2030 ', idempotency_key: 'pasted' }
  const granted = await send('/people/bea/credits/grant', grant)
  assert.equal(granted.status, 303, granted.text)
  const correction = { ...account, amount: '\t-2\n', reason: ' Pasted ', idempotency_key: 'pasted back' }
  assert.equal((await send('/people/bea/credits/adjust', correction)).status, 303)
  const [entry] = await server.db.query(
    `select external_id, reason from credit_entries where organization_id = $1 and idempotency_key = 'pasted back'`,
    [organization],
  )
  assert.deepEqual(entry, { external_id: ' cus bea ', reason: 'Pasted' })
})
