// All operations of the operator's API, in the order of its description.
import { acquisitions } from './acquisition.ts'
import { auditLog } from './audit-log.ts'
import { connections } from './connections.ts'
import { credits } from './credits.ts'
import { erasures } from './erasures.ts'
import { events } from './events.ts'
import { figures } from './figures.ts'
import { finance } from './finance.ts'
import { keys } from './keys.ts'
import { lostMovements } from './lost-movements.ts'
import { merchantAccounts } from './merchant-accounts.ts'
import { merges } from './merges.ts'
import { moneyBack } from './money-back.ts'
import type { Operation } from './operation.ts'
import { orders } from './orders.ts'
import { people } from './people.ts'
import { profiles } from './profiles.ts'
import { rateLimits } from './rate-limits.ts'
import { refunds } from './refunds.ts'
import { restoredKeys } from './restored-keys.ts'
import { searching } from './search.ts'
import { spendOperations } from './spend.ts'
import { projectState } from './state.ts'
import { stripeImports } from './stripe-imports.ts'
import { subscriptions } from './subscriptions.ts'
import { syncReaders } from './sync-readers.ts'
import { tenants } from './tenants.ts'
import { webhooks } from './webhooks.ts'

export const operations: readonly Operation[] = [
  ...searching,
  ...people,
  ...erasures,
  ...subscriptions,
  ...orders,
  ...refunds,
  ...lostMovements,
  ...finance,
  ...profiles,
  ...merges,
  ...moneyBack,
  ...webhooks,
  ...events,
  ...figures,
  ...acquisitions,
  ...spendOperations,
  ...projectState,
  ...syncReaders,
  ...keys,
  ...restoredKeys,
  ...tenants,
  ...credits,
  ...merchantAccounts,
  ...connections,
  ...stripeImports,
  ...rateLimits,
  ...auditLog,
]
