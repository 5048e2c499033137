// A mutant: one small change of the source that breaks a promise, and where that has to be noticed.

export interface Mutant {
  /** What the changed program does wrong. */
  does: string
  /** Under src/. */
  file: string
  code: string
  bug: string
  /** The simulation, the seeds of it that restore a backup, or the test files that must fail. */
  foundBy: 'simulation' | 'simulation of restores' | string[]
}

export type Mutants = Record<string, Mutant>
