// All mutants.
import { billingMutants } from './billing.ts'
import { erasureMutants } from './erasure.ts'
import type { Mutants } from './mutant.ts'
import { syncMutants } from './sync.ts'

export const mutants: Mutants = { ...billingMutants, ...syncMutants, ...erasureMutants }
