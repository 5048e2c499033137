// The page of recovered declines, compared with SQL on the demo: each chain of attempts is walked in the test.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { FROM, PERIOD, startDemo, TO } from './demo-facts.ts'
import { rowsOf, tilesOf } from './page-numbers.ts'

const { page, query, stop } = await startDemo()
after(stop)

const MS = 30 * 86_400_000

test('declined first, paid later: by reason and by attempt, as the attempts tell', async () => {
  const attempts = await query(`
    select external_id || ' ' || currency_code || ' ' || amount || ' ' || coalesce(meta_subs_id, '') || ' ' || coalesce(meta_subs_iteration, '') as payment,
      (extract(epoch from psp_date) * 1000)::bigint as ms, status, psp_reason_code as reason, amount_usd as usd
    from report_transactions r join customers c using (organization_id, external_id)
    where c.project_id = 'demo' and psp_transaction_type = 'sale' order by psp_date, trx_created_at`)
  const reasons = new Map<string, number[]>()
  const tries = new Map<string, number>()
  for (const own of Map.groupBy(attempts, ({ payment }) => payment!).values()) {
    let first: (typeof own)[number] | undefined
    let count = 0
    const end = (paid: boolean) => {
      if (!first || Number(first.ms) < Date.parse(FROM) || Number(first.ms) >= Date.parse(TO)) return
      const [all, back, cents] = reasons.get(first.reason!) ?? [0, 0, 0]
      reasons.set(first.reason!, [
        all! + 1,
        back! + (paid ? 1 : 0),
        cents! + (paid ? Math.round(Number(first.usd) * 100) : 0),
      ])
      const attempt = paid ? String(count + 1) : 'Not paid'
      tries.set(attempt, (tries.get(attempt) ?? 0) + 1)
    }
    for (const one of own) {
      if (one.status === 'succeeded') {
        end(first !== undefined && Number(one.ms) <= Number(first.ms) + MS)
        first = undefined
        count = 0
      } else {
        first ??= one
        count += 1
      }
    }
    end(false)
  }
  const text = await page('/declines', PERIOD)
  assert.deepEqual(
    rowsOf(text, 'by-reason')
      .slice(0, -1)
      .map(([key, , all, back, , money]) => [key, Number(all), Number(back), Math.round(Number(money) * 100)])
      .sort(),
    [...reasons].map(([key, values]) => [key, ...values]).sort(),
  )
  assert.deepEqual(
    rowsOf(text, 'by-attempt')
      .slice(0, -1)
      .map(([key, count]) => [key, Number(count)])
      .sort(),
    [...tries].sort(),
  )
  assert.ok(tries.get('2')! > 10 && tries.get('3')! > 5 && tries.get('Not paid')! > 0)
  const sum = (n: number) => [...reasons.values()].reduce((all, values) => all + values[n]!, 0)
  assert.equal(tilesOf(text)['Paid later'], String(sum(1)))
  assert.equal(tilesOf(text)['Declined first'], String(sum(0)))
})
