// Erasures at payment providers are made in turns: a provider that hangs for one organization delays no other.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eraseAtProviders } from '../../../src/core/erasure/at-provider.ts'
import type { Provider } from '../../../src/payments/providers/provider.ts'
import { scriptedProvider } from '../../payments/billing/scripted-provider.ts'
import { startBilling } from '../../support/billing.ts'
import { until } from '../../support/time.ts'

const billing = await startBilling({}, { worker: false })
after(() => billing.stop())

test('a merchant account that hangs leaves room for another one', async () => {
  const [hanging, other] = [await billing.organization(), await billing.organization()]
  const queue = (organization: { id: string; projectId: string }, count: number) =>
    billing.db.query(
      `insert into provider_erasures (organization_id, psp, psp_merchant_id, target, project_id, profile_id, how, created_at,
         next_attempt_at)
       select $1, 'stripe', 'acct', 'cus_' || n, $2, 'pro_' || n, 'empty', db_clock(), db_clock()
       from generate_series(1, $3::int) n`,
      [organization.id, organization.projectId, String(count)],
    )
  const responses = Promise.withResolvers<{ outcome: 'erased' }>()
  let begun = 0
  const hangs: Provider['eraseCustomer'] = () => {
    begun++
    return responses.promise
  }
  const erases: Provider['eraseCustomer'] = async () => ({ outcome: 'erased' })
  const of = async (id: string) => scriptedProvider({ eraseCustomer: id === hanging.id ? hangs : erases })
  const { app } = billing.server
  await queue(hanging, 6)
  const stop = eraseAtProviders({ ...app, providers: { ...app.providers, of } })
  try {
    await until('two to hang', () => begun === 2)
    await queue(other, 3)
    await until('the others to be erased', async () => {
      const done = 'select 1 from provider_erasures where organization_id = $1 and done_at is not null'
      return (await billing.db.query(done, [other.id])).length === 3
    })
    assert.equal(begun, 2)
  } finally {
    responses.resolve({ outcome: 'erased' })
    await stop()
  }
})
