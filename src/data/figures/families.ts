// All families of figures.
import { answers } from './answers.ts'
import { declines } from './declines.ts'
import { experiments } from './experiments.ts'
import type { Family } from './family.ts'
import { payments } from './payments.ts'
import { renewals } from './renewals.ts'
import { returned } from './returned.ts'
import { sales } from './sales.ts'
import { spend } from './spend.ts'
import { subscriptions } from './subscriptions.ts'
import { screens, visits } from './visits.ts'
import { worth } from './worth.ts'

export const families: readonly Family[] = [
  visits,
  screens,
  answers,
  spend,
  sales,
  worth,
  returned,
  payments,
  declines,
  subscriptions,
  renewals,
  experiments,
]
