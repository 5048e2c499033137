// Brings figures up to date, compares them with the records, and reads them.
import assert from 'node:assert/strict'
import { countDifferences } from '../../src/data/figures/compute.ts'
import { families } from '../../src/data/figures/families.ts'
import { followProject } from '../../src/data/figures/follow.ts'
import { type Question, readFigures } from '../../src/data/figures/read.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import { until } from './time.ts'

export const ALL_DAYS = { from: '2020-01-01', to: '2032-01-01' }

/** Brings the project's figures up to date, and fails if any of them differs from its records. */
export async function assertExact(db: Db, projectId: string, message?: string): Promise<void> {
  // A project that a server is computing just now is skipped.
  await until('the figures', async () => {
    await followProject(db, projectId)
    return (await db.query('select 1 from figure_marks where project_id = $1 limit 1', [projectId])).length === 0
  })
  for (const family of families) {
    const differences = await db.tx(async (query) => {
      // All days at once take as long as the machine needs.
      await query('set local statement_timeout = 0')
      return await countDifferences(query, projectId, family, ALL_DAYS)
    })
    assert.equal(differences, 0, `${family.table} ${message ?? ''}`)
  }
}

/** The values of all time, unless `more` restricts them. */
export async function figuresOf(db: Db, projectId: string, metrics: string, more: Partial<Question> = {}) {
  const names = metrics.split(' ') as Question['metrics']
  const found = await readFigures(db, {
    projects: [projectId],
    metrics: names,
    ...ALL_DAYS,
    money: 'usd',
    test: false,
    ...more,
  })
  return found.map(({ period, key, currency, values }) => ({
    ...(period && { period }),
    ...(key !== null && { key }),
    ...(more.money === 'own' && { currency }),
    ...values,
  }))
}
