// An import of a Stripe account: what it holds afterwards equals the account, record by record and in its sums.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { accountFees, accountSums, differences, openStripeImports, reportedFees, storedSums } from './stripe-imports.ts'

const all = await openStripeImports({ demoCustomers: 150 })
after(() => all.close())
const project = await all.imports.project()

const count = async (table: string, of = project) =>
  Number((await all.imports.row(`select count(*) as n from ${table} where project_id = $1`, [of.id])).n)

async function listed<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of list) found.push(one)
  return found
}

test('an account is imported as a whole, and its sums by month and currency are the same', async () => {
  const { stripe } = all
  const state = await all.run(project)
  assert.deepEqual([state.status, state.tally.rejects, differences(state)], ['done', [], []])
  const account = await accountSums(stripe)
  assert.ok(account.length > 50)
  assert.deepEqual(await storedSums(all, project), account)
  const subscriptions = await listed(stripe.subscriptions.list({ limit: 100, status: 'all' }))
  assert.equal(await count('subscriptions'), subscriptions.length)
  assert.equal(await count('products'), 3)
  const charges = await listed(stripe.charges.list({ limit: 100 }))
  assert.equal(await count('transactions'), charges.filter(({ status }) => status === 'succeeded').length)
  const guests = charges.filter(({ customer }) => customer === null).length
  const owners = new Set([...subscriptions, ...charges].map(({ customer }) => customer).filter((id) => id !== null))
  for await (const { id } of stripe.customers.list({ limit: 100 })) owners.add(id)
  assert.equal(await count('profiles'), owners.size + guests)
})

test('the finance report has the fee of every movement, with the sums of the account', async () => {
  const account = await accountFees(all.stripe)
  assert.match(account.join(), /^USD: -[0-9]{4,}$/)
  assert.deepEqual(await reportedFees(all, project), account)
})

test('what was paid in US dollars has its amount in them', async () => {
  const [row] = await all.imports.rows(
    `select count(*) filter (where amount_usd is distinct from case currency_code when 'USD' then amount end) as wrong,
       count(amount_usd) as n from report_transactions where organization_id = $1`,
    [project.organizationId],
  )
  assert.deepEqual([row!.wrong, Number(row!.n) > 0], ['0', true])
})

test('importing it again changes nothing', async () => {
  const stamps = () =>
    all.imports.rows(
      `select id, updated_at from subscriptions where project_id = $1
       union all select id, updated_at from profiles where project_id = $1
       union all select trx_id::text, trx_created_at from report_transactions where organization_id = $2 order by 1`,
      [project.id, project.organizationId],
    )
  const before = await stamps()
  assert.deepEqual(differences(await all.run(project)), [])
  assert.deepEqual(await stamps(), before)
})
