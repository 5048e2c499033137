// Mutants of batches: calls of several organizations in one statement and one commit.
import type { Mutants } from './mutant.ts'

const tenants = ['test/payments/billing/tenants-together.test.ts']
const batching = ['test/lib/batching.test.ts']

export const batchMutants: Mutants = {
  'responses-mixed-up': {
    does: 'gives every charge of a batch the response of the first',
    file: 'lib/batching.ts',
    code: `resolve(results[n])`,
    bug: `resolve(results[0])`,
    foundBy: 'simulation',
  },
  'settles-behind-other-tenants': {
    does: 'lets a settlement wait for a lock of another organization in its batch',
    file: 'payments/billing/charge/settle.ts',
    code: '(await settleAll(query, commit, all, lockTimeout)).orders',
    bug: '(await settleAll(query, commit, all, null)).orders',
    foundBy: tenants,
  },
  'orders-of-other-tenants': {
    does: 'returns for a key the order that any organization of the batch has under it',
    file: 'payments/billing/charge/claim.ts',
    code: `on o.organization_id = a.organization_id
        and o.external_id = a.external_id and`,
    bug: `on true
        and o.external_id = a.external_id and`,
    foundBy: tenants,
  },
  'cards-of-other-tenants': {
    does: 'charges the card that the customer of that id has in any organization of the batch',
    file: 'payments/billing/charge/saved-card.ts',
    code: 'where r.organization_id = ${of}.organization_id and',
    bug: 'where r.organization_id = any($3) and',
    foundBy: tenants,
  },
  'one-failure-fails-all': {
    does: 'fails all calls of a tenant with the error of one of them',
    file: 'lib/batching.ts',
    code: 'else for (const one of calls) await this.#run(lane, work, [one])',
    bug: 'else for (const { reject } of calls) reject(error)',
    foundBy: batching,
  },
  'one-tenant-fills-the-batch': {
    does: 'takes calls in their order, so that one tenant can fill every batch',
    file: 'lib/batching.ts',
    code: 'const byTenant = Array.from(Map.groupBy(line.waiting, ({ tenant }) => tenant).values())',
    bug: 'const byTenant = [line.waiting.slice(0, MAX_IN_BATCH)].concat([])[0]!.map((call) => [call])',
    foundBy: batching,
  },
  'batch-without-bound': {
    does: 'takes all calls that wait into one batch',
    file: 'lib/batching.ts',
    code: 'if (line.waiting.length <= MAX_IN_BATCH) return',
    bug: 'if (line.waiting.length > 0) return',
    foundBy: batching,
  },
  'slow-tenant-holds-up-others': {
    does: 'keeps the waiting calls of a tenant in the shared lane when it gets its own lane',
    file: 'lib/batching.ts',
    code: 'this.#shared.moveTo(lane, tenant)',
    bug: '',
    foundBy: batching,
  },
  'tenant-stays-apart': {
    does: 'never lets a tenant back into the shared batches',
    file: 'lib/batching.ts',
    code: 'void this.#serve(lane, () => this.#apart.delete(tenant))',
    bug: 'void this.#serve(lane)',
    foundBy: batching,
  },
}
