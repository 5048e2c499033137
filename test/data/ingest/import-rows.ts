// Reads lines of an import: the columns of a valid line, or the message about a bad one.

import { BadLine } from '../../../src/core/records/import/fields.ts'
import { columnsOf, readRow } from '../../../src/data/ingest/row.ts'
import { copyRow } from '../../../src/lib/pg/copy-text.ts'

/** The latest time that a line may have. */
export const LATEST = '2026-06-01T00:00:00.000000Z'

/** The columns of a line as COPY gets them. */
export function columns(text: string): Record<string, string> {
  const row = readRow(text, { latest: LATEST })
  const values = copyRow(row.values).split('\t')
  return Object.fromEntries(columnsOf(row.kind).map(({ name }, n) => [name, values[n]!]))
}

export function problem(text: string): string {
  try {
    readRow(text, { latest: LATEST })
  } catch (error) {
    if (error instanceof BadLine) return error.message
    throw error
  }
  return 'none'
}

export type Builder = (data?: Record<string, unknown>) => object
export const problemOf = (kind: Builder, data: Record<string, unknown>) => problem(JSON.stringify(kind(data)))
export const columnsFor = (kind: Builder, data: Record<string, unknown> = {}) => columns(JSON.stringify(kind(data)))
