// All mutants.
import { batchMutants } from './batches.ts'
import { billingMutants } from './billing.ts'
import { creditMutants } from './credits.ts'
import { erasureMutants } from './erasure.ts'
import type { Mutants } from './mutant.ts'
import { restoreMutants } from './restores.ts'
import { stripeMutants } from './stripe.ts'
import { syncMutants } from './sync.ts'

export const mutants: Mutants = {
  ...billingMutants,
  ...creditMutants,
  ...stripeMutants,
  ...batchMutants,
  ...syncMutants,
  ...erasureMutants,
  ...restoreMutants,
}
