// A part of the crash matrix for work besides requests: a process is killed at some borders of each piece of work.
import { test } from 'node:test'
import { ROWS } from './victims.ts'
import { WorkMatrix } from './work-matrix.ts'

const BORDERS = 2

test('a process killed in background work, an import, an erasure, a restore or a reconciliation', async (t) => {
  const matrix = await WorkMatrix.open()
  t.after(() => matrix.close())
  for (const row of ROWS)
    await t.test(row.title, async () => {
      // Nothing is open at the first and the last border; some of the others are tried.
      for (const border of (await matrix.borders(row, BORDERS + 2)).slice(1, -1)) await matrix.crash(row, border)
    })
})
