// What customers cost and what they are worth: by hand on a small world, and by an independent model on random histories.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { followProject } from '../../../src/data/figures/follow.ts'
import { readLifetime } from '../../../src/data/figures/lifetime.ts'
import { readReturns } from '../../../src/data/figures/returns.ts'
import { addDays, DAY_MS } from '../../../src/lib/days.ts'
import { openRandom } from '../../../src/lib/seeded-random.ts'
import { openAdmin } from '../../support/admin.ts'
import { PROJECT } from '../../support/events.ts'
import { assertExact } from '../../support/figures.ts'
import { type Line, line, openImports, uuid } from '../../support/imports.ts'

const at = (day: string) => `${day}T12:00:00Z`

const { events, admin } = await openAdmin()

describe('spend, and what it brought back', () => {
  const load = async (rows: object[]) => admin.call('POST', `/projects/${PROJECT}/spend`, { rows })
  const ask = async (query: string) => {
    await followProject(events.app.db, PROJECT)
    return (await admin.call('GET', `/projects/${PROJECT}/figures/${query}`)).body
  }
  before(async () => {
    const person = (id: string, day: string, source: string, campaign: string, funnel_id: string | null = null) => [
      { record: 'profile', data: { id, created_at: at(day) } },
      {
        record: 'session',
        data: { id: `s_${id}`, profile_id: id, created_at: at(day), source, campaign, funnel_id, country: 'DE' },
      },
    ]
    const paid = (id: string, profile_id: string, day: string, price: number) => ({
      record: 'transaction',
      data: { id, profile_id, created_at: at(day), price, price_usd: price, currency: 'USD' },
    })
    const lines = [
      { record: 'funnel', data: { id: 'quiz', title: 'Quiz', created_at: at('2025-01-01') } },
      ...person('ada', '2025-01-10', 'google', 'brand', 'quiz'),
      ...person('bob', '2025-01-10', 'google', 'brand'),
      ...person('cleo', '2025-01-31', 'google', 'other', 'quiz'),
      ...person('dan', '2025-02-03', 'meta', 'spring', 'quiz'),
      paid('t1', 'ada', '2025-01-10', 1000),
      paid('t2', 'ada', '2025-01-17', 2000),
      paid('t3', 'ada', '2025-02-10', 3000),
      paid('t4', 'cleo', '2025-02-28', 500),
      paid('t5', 'dan', '2025-02-02', 700),
    ]
    const body = lines.map((one) => JSON.stringify(one)).join('\n')
    const { body: imported } = await admin.call('POST', `/projects/${PROJECT}/import?live=false`, body)
    assert.deepEqual(imported.rejects, [])
  })

  test('a load replaces the amounts of its days and sources, and sums what is given twice', async () => {
    const row = (day: string, source: string, campaign: string, amount: string | number, currency = 'USD') => ({
      day,
      source,
      campaign,
      currency,
      amount,
    })
    await load([row('2025-01-10', 'google', 'wrong', 99), row('2025-01-10', 'meta', 'spring', '4.00')])
    const { status, body } = await load([
      row('2025-01-10', 'google', 'brand', '12.00'),
      row('2025-01-10', 'google', 'brand', 8),
      row('2025-01-11', 'google', 'other', '5.50', 'SEK'),
    ])
    assert.equal(status, 200)
    assert.deepEqual(body, { rows: 2, days: 2, replaced: 1, without_usd: 1 })
    const { data } = await ask('acquisition?from=2025-01-01&to=2025-01-31&by=source')
    assert.deepEqual(data, [
      {
        key: 'google',
        spend: 20,
        spend_without_usd: 1,
        sessions: 3,
        people: 3,
        customers: 1,
        cac: 20,
        returned: [10, 30, 35, 65],
        roas: [0.5, 1.5, 1.75, 3.25],
        payback_days: 7,
        revenue_per_new_person: 10,
        without_usd: 0,
        returned_unvalued: [],
        revenue_unvalued: [],
      },
      {
        key: 'meta',
        spend: 4,
        spend_without_usd: 0,
        sessions: 0,
        people: 0,
        customers: 0,
        cac: null,
        returned: [0, 0, 0, 0],
        roas: [0, 0, 0, 0],
        payback_days: null,
        revenue_per_new_person: null,
        without_usd: 0,
        returned_unvalued: [],
        revenue_unvalued: [],
      },
    ])
    await assertExact(events.app.db, PROJECT)
  })

  test('spend belongs to funnels by the people whom it brought', async () => {
    const { data } = await ask('acquisition?from=2025-01-01&to=2025-01-31&by=funnel')
    // Ada and Bob came on the 10th from the campaign, one of them to the quiz; nobody came from the others.
    assert.deepEqual(
      data.map(({ key, spend }: { key: string; spend: number }) => [key, spend]),
      [
        ['', 14],
        ['quiz', 10],
      ],
    )
  })

  test('the worth of monthly cohorts, by hand', async () => {
    const { data } = await ask('lifetime?from=2025-01-01&to=2025-02-28')
    const [january, february] = data
    // Ada pays 10 and 20 in her first month and 30 on the day on which it is over; Cleo's is over on the last day of February.
    assert.deepEqual(
      [january.cohort, january.people, january.worth.slice(0, 3)],
      ['2025-01-01', 3, [10, 21.666667, 21.666667]],
    )
    // Dan paid a day before his first session.
    assert.deepEqual([february.cohort, february.people, february.worth.slice(0, 2)], ['2025-02-01', 1, [7, 7]])
    const paid = (await ask('lifetime?from=2025-01-01&to=2025-02-28&since=payment')).data
    assert.deepEqual(
      paid.map(({ cohort, people, worth }: { cohort: string; people: number; worth: number[] }) => [
        cohort,
        people,
        worth.slice(0, 2),
      ]),
      [
        ['2025-01-01', 1, [30, 60]],
        ['2025-02-01', 2, [6, 6]],
      ],
    )
    const bySource = (await ask('lifetime?from=2025-01-01&to=2025-02-28&by=source')).data
    assert.deepEqual(
      bySource.map(({ key, people, worth }: { key: string; people: number; worth: number[] }) => [
        key,
        people,
        worth[1],
      ]),
      [
        ['google', 3, 21.666667],
        ['meta', 1, 7],
      ],
    )
  })

  for (const [what, query, sentence] of [
    ['a product without a payment', 'lifetime?by=product', /needs since=payment/],
    ['a value of nothing', 'lifetime?value=x', /value needs by/],
    ['a day that is none', 'acquisition?from=2025-02-30', /from must be a day/],
    ['another dimension', 'acquisition?by=kind', /by must be/],
  ] as const)
    test(`400 for ${what}`, async () => {
      const { status, body } = await admin.call('GET', `/projects/${PROJECT}/figures/${query}`)
      assert.equal(status, 400)
      assert.match(JSON.stringify(body), sentence)
    })

  for (const [what, change, sentence] of [
    ['an unknown currency', { currency: 'XXY' }, /currency must be one of ISO 4217/],
    ['too many decimals', { amount: '1.234' }, /at most 2 decimal places/],
    ['a negative amount', { amount: '-1' }, /amount/],
    ['a person as source', { source: 'ada@example.com' }, /names? a source/],
    ['no day', { day: 'today' }, /day must be a day/],
  ] as const)
    test(`400 for spend with ${what}, and nothing changes`, async () => {
      const before = await events.app.db.query('select count(*) as n from spend')
      const good = { day: '2025-01-10', source: 'google', currency: 'USD', amount: '1.00' }
      const { status, body } = await load([good, { ...good, ...change }])
      assert.equal(status, 400)
      assert.match(JSON.stringify(body), sentence)
      assert.deepEqual(await events.app.db.query('select count(*) as n from spend'), before)
    })
})

interface Person {
  id: string
  source: string
  sessions: string[]
  /** Day and US cents; negative for refunds. */
  moves: { day: string; cents: number; paid: boolean }[]
}

/** Days since, and whole months since: over on the same day of the next month, or on its last day. */
const daysBetween = (from: string, to: string) => Math.max(0, (Date.parse(to) - Date.parse(from)) / DAY_MS)
function monthsBetween(from: string, to: string): number {
  let months = 0
  for (;;) {
    const [year, month, day] = from.split('-').map(Number) as [number, number, number]
    const last = new Date(Date.UTC(year, month + months + 1, 0)).getUTCDate()
    const next = new Date(Date.UTC(year, month + months, Math.min(day, last))).toISOString().slice(0, 10)
    if (next > to) return months
    months += 1
  }
}

for (const seed of [3, 4])
  test(`returns and worth are those of an independent model, seed ${seed}`, async () => {
    const imports = await openImports()
    try {
      const project = await imports.project()
      const random = openRandom(seed)
      const people: Person[] = Array.from({ length: 40 }, (_, n) => {
        const first = addDays('2024-01-01', random.integer(0, 120))
        const sessions = [first, ...(random.chance(0.5) ? [addDays(first, random.integer(0, 60))] : [])]
        const moves = Array.from({ length: random.integer(0, 5) }, () => {
          const day = addDays(first, random.integer(0, 400))
          return { day, cents: random.integer(1, 5000), paid: true }
        })
        if (moves[0] && random.chance(0.4)) {
          // A late refund.
          moves.push({ day: addDays(moves[0].day, random.integer(0, 90)), cents: -moves[0].cents, paid: false })
        }
        return { id: `p${n}`, source: random.pick(['google', 'meta', 'bing']), sessions, moves }
      })
      const lines: Line[] = [line.product(), line.merchant_account({})]
      let n = 0
      for (const { id, source, sessions, moves } of people) {
        lines.push(line.profile({ id }), line.customer({ external_id: id, profile_id: id }))
        for (const [place, day] of sessions.entries())
          lines.push(
            line.session({
              id: `${id}_${place}`,
              profile_id: id,
              created_at: at(day),
              source: place === 0 ? source : 'later',
            }),
          )
        for (const { day, cents, paid } of moves) {
          n += 1
          lines.push(
            paid
              ? line.transaction({ id: `t${n}`, profile_id: id, created_at: at(day), price: cents, price_usd: cents })
              : line.payment({
                  external_id: id,
                  order_id: uuid(1000 + n),
                  trx_id: uuid(5000 + n),
                  psp_transaction_type: 'refund',
                  status: 'refunded',
                  trx_created_at: at(day),
                  amount: -cents / 100,
                  amount_usd: -cents / 100,
                  currency_code: 'USD',
                }),
          )
        }
      }
      // In two imports, so that the second changes what the first made; people before their sessions come.
      const half = (one: Line, index: number) =>
        index % 3 !== 0 || !['session', 'transaction'].includes((one as { record: string }).record)
      await imports.run(project, lines.filter(half))
      await followProject(imports.db, project.id)
      const { rejects } = await imports.run(
        project,
        lines.filter((one, index) => !half(one, index)),
      )
      assert.deepEqual(rejects, [])
      await assertExact(imports.db, project.id)
      const [from, to] = ['2024-02-01', '2024-04-01']
      const common = { projects: [project.id], from, to, test: false }
      const came = people.map((one) => ({ ...one, first: [...one.sessions].sort()[0]! }))
      const within = came.filter(({ first }) => first >= from && first < to)
      for (const { key, people: count, returned } of await readReturns(imports.db, { ...common, by: 'source' })) {
        if (key === '' || key === 'later') continue
        const own = within.filter(({ source }) => source === key)
        assert.equal(count, own.length, key!)
        const sum = (day: number) =>
          own
            .flatMap(({ first, moves }) => moves.filter((move) => daysBetween(first, move.day) <= day))
            .reduce((all, { cents }) => all + cents, 0) / 100
        assert.deepEqual(returned, [0, 7, 30, 90].map(sum), key!)
      }
      const rows = await readLifetime(imports.db, { ...common, since: 'session', cohort: 'month', today: '2025-12-31' })
      assert.equal(rows.length, 2)
      for (const { cohort, people: count, worth } of rows) {
        const own = within.filter(({ first }) => first.slice(0, 7) === cohort!.slice(0, 7))
        assert.equal(count, own.length)
        const expected = worth.map((_, month) => {
          const moved = own.flatMap(({ first, moves }) =>
            moves.filter((move) => monthsBetween(first, move.day) <= month),
          )
          return Math.round((moved.reduce((all, { cents }) => all + cents, 0) / 100 / own.length) * 1e6) / 1e6
        })
        assert.deepEqual(worth, expected, cohort!)
      }
    } finally {
      await imports.stop()
    }
  })
