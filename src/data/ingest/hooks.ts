// Joins the statements of several observers of a merge.
import type { MergeHooks } from './merge.ts'

export function together(...all: MergeHooks[]): MergeHooks {
  return {
    beforeUpdate: all.flatMap(({ beforeUpdate = [] }) => beforeUpdate),
    beforeAdd: all.flatMap(({ beforeAdd = [] }) => beforeAdd),
  }
}
