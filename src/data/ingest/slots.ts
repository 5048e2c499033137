// Bounds how many connections imports hold: each has one from its first line to its last, also while it waits for another import.
import { tryLater } from '../../lib/errors.ts'
import type { Patience } from '../../lib/fair-queue.ts'
import { createTurns } from '../../lib/turns.ts'

// More would not be faster, because the imports of an organization write one after the other.
const AT_ONCE = 4

/** How long an import over HTTP waits: Node gives the whole request 30 s by default. */
export const PATIENCE: Patience = {
  ms: 10_000,
  error: () => tryLater('too_many_imports', 'Too many imports are in progress: try again.'),
}

/** Runs an import of the organization when there is room for it; throws the error of `patience` when that takes too long. */
export const inSlot = createTurns(AT_ONCE)
