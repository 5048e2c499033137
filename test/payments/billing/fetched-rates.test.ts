// RATES_URL: rates are fetched when they are due by one process, a bad file changes nothing and is named, and old rates are warned of.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, beforeEach, test } from 'node:test'
import { rebuildFigures } from '../../../src/data/figures/follow.ts'
import { checkRates } from '../../../src/operator/doctor/rates.ts'
import { fetchDueRates, fetchRatesNow } from '../../../src/payments/billing/rates/fetch-rates.ts'
import { insert } from '../../support/data.ts'
import { type Arrival, startReceiver } from '../../support/receiver.ts'
import { startTestServer } from '../../support/server.ts'
import { zipOf } from './zip.ts'

let respond: (arrival: Arrival, response: ServerResponse) => number | undefined

// The days stay the same when one begins during the tests.
const BEGUN = Date.now()
const daysAgo = (days: number) => new Date(BEGUN - days * 86_400_000).toISOString().slice(0, 10)

/** The XML of the European Central Bank: eurofxref-daily.xml with one day, eurofxref-hist-90d.xml with many. */
const xml = (days: Record<string, Record<string, string>>) => `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
	<gesmes:subject>Reference rates</gesmes:subject>
	<gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>
	<Cube>${Object.entries(days)
    .map(
      ([day, rates]) =>
        `<Cube time='${day}'>${Object.entries(rates).map(([code, rate]) => `<Cube currency='${code}' rate='${rate}'/>`)}</Cube>`,
    )
    .join('\n')}</Cube>
</gesmes:Envelope>`

const send =
  (text: string | Buffer, headers: Record<string, string> = {}) =>
  (_: Arrival, response: ServerResponse) => {
    response.writeHead(200, headers).end(text)
    return undefined
  }

const bank = await startReceiver((arrival, response) => respond(arrival, response))
const server = await startTestServer({ RATES_URL: `${bank.url}/eurofxref.xml?key=hidden` }, { worker: false })
const project = await server.project()
after(async () => {
  await server.stop()
  await bank.close()
})
beforeEach(async () => {
  bank.arrivals.length = 0
  await server.db.query('delete from rates_fetch')
})

const due = () => server.db.query('update rates_fetch set next_attempt_at = db_clock()')
const rates = () =>
  server.db.query(
    `select day::text, currency_code as code, per_euro::text as rate from exchange_rates
     where organization_id = $1 and currency_code <> 'EUR' order by 1, 2`,
    [project.organizationId],
  )
const state = async () => (await server.admin(`/organizations/${project.organizationId}/exchange-rates`)).body

test('fetched once by two processes, stored for every organization, and asked for again only if it has changed', async () => {
  const file = xml({ [daysAgo(0)]: { USD: '1.0919', JPY: '160.5' }, [daysAgo(1)]: { USD: '1.0900', JPY: '160.0' } })
  respond = ({ headers }, response) =>
    headers['if-none-match'] === '"one"' ? 304 : send(file, { etag: '"one"' })({} as Arrival, response)
  await Promise.all([fetchDueRates(server.app), fetchDueRates(server.app)])
  await fetchDueRates(server.app)
  assert.equal(bank.arrivals.length, 1)
  assert.deepEqual(
    (await rates()).map(({ code, rate }) => `${code} ${Number(rate)}`),
    ['JPY 160', 'USD 1.09', 'JPY 160.5', 'USD 1.0919'],
  )
  const [entry] = (await server.admin('/audit')).body.data
  assert.deepEqual([entry.action, entry.actor_kind, entry.after.rates], ['rates.loaded', 'tundish', 4])
  await due()
  await fetchDueRates(server.app)
  assert.equal(bank.arrivals[1]!.headers['if-none-match'], '"one"')
  const { newest_day, source, error, fetched_at } = await state()
  assert.deepEqual([newest_day, source, error], [daysAgo(0), new URL(bank.url).host, null])
  assert.ok(fetched_at)

  respond = send(`Date, USD, JPY, \n${daysAgo(0)}, 1.0920, N/A, \n`)
  const unchanged = await fetchRatesNow(server.app, { kind: 'command line', id: 'me', source: 'here' })
  assert.deepEqual(unchanged, { rates: 1, last_day: daysAgo(0) })

  respond = send(zipOf({ 'eurofxref-hist.csv': `Date,USD,JPY,\n${daysAgo(0)},1.0930,161.5,\n` }))
  const zipped = await fetchRatesNow(server.app, { kind: 'command line', id: 'me', source: 'here' })
  assert.deepEqual(zipped, { rates: 2, last_day: daysAgo(0) })
})

test('a bad file changes nothing and is named, and tried again later', async () => {
  const before = await rates()
  const moved = (_: Arrival, response: ServerResponse) => {
    response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end()
    return undefined
  }
  for (const [answer, sentence] of [
    [send('<html>Maintenance</html>'), /is XML without exchange rates/],
    [send(xml({ [daysAgo(0)]: { USD: '1.3', JPY: '-3' } })), /"-3" is not a rate/],
    [send(xml({ [daysAgo(0)]: { JPY: '3' } })), /no rate of the US dollar on/],
    [send(xml({ '2062-01-02': { USD: '1.3' } })), /rates of 2062-01-02, which is to come/],
    [send('PK\u0003\u0004rest'), /is a ZIP archive that is not whole: give the CSV or XML that is in it/],
    [send('x'.repeat(33 * 1024 * 1024)), /exceeds 32 MiB/],
    [() => 503, /has the status 503/],
    [moved, /has the status 302/],
  ] as const) {
    respond = answer
    await fetchDueRates(server.app)
    assert.match((await state()).error, sentence)
    await due()
  }
  assert.deepEqual(await rates(), before)
  const [{ failures }] = (await server.db.query('select failures from rates_fetch')) as [{ failures: string }]
  assert.equal(failures, '8')
  assert.doesNotMatch(JSON.stringify([await state(), server.logLines()]), /hidden/)
  const [finding] = await checkRates(server.db, server.app.config)
  assert.deepEqual(
    [finding!.level, finding!.message.slice(0, 51)],
    ['warning', 'Exchange rates cannot be fetched from RATES_URL: Th'],
  )
})

test('the doctor warns of old rates where amounts need them', async () => {
  const aged = () => checkRates(server.db, { ratesUrl: undefined })
  await server.db.query('update exchange_rates set day = day - 20 where organization_id = $1', [project.organizationId])
  assert.deepEqual(await aged(), [])
  const paid = {
    id: 't',
    currency: 'BRL',
    created_at: `${daysAgo(2)}T10:00:00Z`,
    updated_at: `${daysAgo(2)}T10:00:00Z`,
  }
  await insert(server.db, project, { profiles: [{ id: 'profile' }], transactions: [paid] })
  await rebuildFigures(server.db, project.id)
  const [finding] = await aged()
  assert.match(
    finding!.message,
    /^The exchange rates of organization .* are of .*, 1[45] working days old, and it has payments/,
  )
  assert.equal(finding!.organization_id, project.organizationId)
  await server.db.query('update exchange_rates set day = day + 20 where organization_id = $1', [project.organizationId])
  assert.deepEqual(await aged(), [])
})
