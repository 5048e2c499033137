// Imports random accounts, and compares what is stored with an independent reading of the same objects.
import assert from 'node:assert/strict'
import type { StripeImports } from '../data/ingest/stripe/stripe-imports.ts'
import { openStripeSimulator } from '../support/simulators.ts'
import { randomAccount } from './account.ts'
import type { Fields } from './random-object.ts'
import { type Reading, readAccount } from './reading.ts'

/** Imports the accounts of these seeds at once; returns the number of their objects. Throws with the first seed if they differ. */
export async function checkAccounts(all: StripeImports, seeds: number[]): Promise<number> {
  const objects = seeds.flatMap(randomAccount)
  const simulator = await openStripeSimulator()
  try {
    for (const part of parts(objects)) await simulator.control('/objects', { objects: part })
    const project = await all.imports.project()
    const named = new Map<string, string>()
    const onRejected = (line: string) => {
      // A text that was too long was cut, and its object is stored.
      if (!line.includes(': it has more than ')) named.set(line.split(' ')[0]!, line)
    }
    const state = await all.run(project, {}, { apiUrl: simulator.url, onRejected })
    const reading = readAccount(objects)
    assert.equal(state.status, 'done')
    const { leftOut } = reading
    const [unexpected, unnamed] = [
      [...named].filter(([id]) => !leftOut.has(id)),
      [...leftOut].filter((id) => !named.has(id)),
    ]
    assert.deepEqual([unexpected.map(([, line]) => line), unnamed], [[], []])
    const unclear = [...named.values()].filter((line) => line.includes('has a form that is not known'))
    assert.deepEqual(unclear, [])
    await compareStored(all, project, reading)
    return objects.length
  } finally {
    await simulator.cleanUp()
  }
}

/** Small enough for one request each. */
function* parts(objects: Fields[]): Generator<Fields[]> {
  let part: Fields[] = []
  let size = 0
  for (const object of objects) {
    part.push(object)
    size += JSON.stringify(object).length
    if (size < 400_000) continue
    yield part
    part = []
    size = 0
  }
  yield part
}

const KINDS: Record<string, string> = {
  'sale succeeded': 'payments',
  'sale failed': 'failed payments',
  'refund refunded': 'refunds',
  'refund failed': 'failed refunds',
  'chargeback refunded': 'chargebacks',
  'chargeback_reversal succeeded': 'reversed chargebacks',
}
const DECIMALS: Record<string, number> = { JPY: 0, ISK: 0, KWD: 3 }

async function compareStored(
  { imports }: StripeImports,
  { id, organizationId }: { id: string; organizationId: string },
  reading: Reading,
): Promise<void> {
  const subscriptions = await imports.rows(
    `select id, currency, price, status, extract(epoch from period_ends_at)::bigint as ends
     from subscriptions where project_id = $1`,
    [id],
  )
  const prices = subscriptions
    .map((row) => {
      const isOver = reading.prices.get(row.id!)?.match(/ [0-9]+$/)
      return `${row.id} ${row.currency} ${row.price} ${row.status} ${isOver ? row.ends : '-'}`
    })
    .sort()
  assert.deepEqual(prices, [...reading.prices].map(([sub, price]) => `${sub} ${price}`).sort())
  const rows = await imports.rows(
    `select psp_transaction_type || ' ' || status as kind, to_char(psp_date at time zone 'UTC', 'YYYY-MM') as month,
       currency_code as currency, count(*) as n, sum(amount) as sum
     from report_transactions where organization_id = $1 group by 1, 2, 3`,
    [organizationId],
  )
  const stored = rows.map(({ kind, month, currency, n, sum }) => {
    const minor = Math.round(Number(sum) * 10 ** (DECIMALS[currency!] ?? 2))
    return `${KINDS[kind!]} ${month} ${currency}: ${n} ${minor}`
  })
  const expected = [...reading.sums].map(([key, { count, minor }]) => `${key}: ${count} ${minor}`)
  assert.deepEqual(stored.sort(), expected.sort())
  const cards = await imports.rows(
    `select psp_transaction_id as id, payment_method_token as card from report_transactions
     where organization_id = $1 and payment_method_token is not null`,
    [organizationId],
  )
  assert.deepEqual(new Map(cards.map(({ id, card }) => [id, card])), reading.cards)
  const { n } = await imports.row('select count(*) as n from transactions where project_id = $1', [id])
  assert.equal(Number(n), reading.transactions)
}
