// All families of figures.
import type { Family } from './family.ts'
import { payments } from './payments.ts'
import { sales } from './sales.ts'
import { subscriptions } from './subscriptions.ts'
import { screens, visits } from './visits.ts'

export const families: readonly Family[] = [visits, screens, sales, payments, subscriptions]
