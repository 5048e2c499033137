// The result of an import.
import type { Reject } from './rejected.ts'

export interface ImportResult {
  /** Every line that was read and is not empty: the sum of the five below, unless a bad line ended the import. */
  read: number
  /** Lines that changed what is stored. */
  written: number
  /** Lines that changed nothing: the record got no new stamp, and no event was written. */
  unchanged: number
  /** Lines older than the stored record, or about records that an import does not change. */
  skipped: number
  /** Lines about erased people, stored without their personal data. */
  erased: number
  rejected: number
  /** The first hundred of the rejected lines, causes before what refers to them. */
  rejects: Reject[]
  /** Set when reading stopped at the hundredth bad line: later lines were not read. */
  stopped?: true
}

/** That of an import that wrote nothing because of bad lines. */
export const refused = (read: number, rejects: Reject[], rejected: number): ImportResult => ({
  read,
  written: 0,
  unchanged: 0,
  skipped: 0,
  erased: 0,
  rejected,
  rejects,
})
