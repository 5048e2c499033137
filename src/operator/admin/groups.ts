// The operations by the first word of their command, so that a command loads only its own group: this halves its start-up time.
import type { Operation } from './operation.ts'

type Group = readonly Operation[]

/** A module is loaded when one of its commands runs. `operations.ts` loads all of them, for the API. */
const GROUPS: Readonly<Record<string, () => Promise<Group[]>>> = {
  audit: async () => [(await import('./audit-log.ts')).auditLog],
  credits: async () => [(await import('./credits.ts')).credits],
  delivery: async () => [(await import('./events.ts')).events],
  event: async () => [(await import('./events.ts')).events],
  figures: async () => [
    (await import('./figures.ts')).figures,
    (await import('./acquisition.ts')).acquisitions,
    (await import('./spend.ts')).spendOperations,
  ],
  keys: async () => [(await import('./keys.ts')).keys, (await import('./restored-keys.ts')).restoredKeys],
  'merchant-account': async () => [
    (await import('./merchant-accounts.ts')).merchantAccounts,
    (await import('./connections.ts')).connections,
  ],
  operator: async () => [(await import('./keys.ts')).keys],
  order: async () => [(await import('./orders.ts')).orders],
  org: async () => [(await import('./tenants.ts')).tenants, (await import('./rate-limits.ts')).rateLimits],
  profile: async () => [
    (await import('./people.ts')).people,
    (await import('./erasures.ts')).erasures,
    (await import('./merges.ts')).merges,
    (await import('./profiles.ts')).profiles,
  ],
  project: async () => [
    (await import('./state.ts')).projectState,
    (await import('./sync-readers.ts')).syncReaders,
    (await import('./tenants.ts')).tenants,
    (await import('./rate-limits.ts')).rateLimits,
  ],
  reconcile: async () => [(await import('./lost-movements.ts')).lostMovements],
  refund: async () => [(await import('./refunds.ts')).refunds, (await import('./money-back.ts')).moneyBack],
  report: async () => [(await import('./finance.ts')).finance],
  search: async () => [(await import('./search.ts')).searching],
  'stripe-import': async () => [(await import('./stripe-imports.ts')).stripeImports],
  subscription: async () => [(await import('./subscriptions.ts')).subscriptions],
  webhook: async () => [(await import('./webhooks.ts')).webhooks, (await import('./state.ts')).projectState],
}

/** The operations whose command begins with this word. */
export async function operationsOf(group: string): Promise<Operation[]> {
  const lists = (await GROUPS[group]?.()) ?? []
  return lists.flat().filter(({ command }) => command.split(' ')[0] === group)
}
