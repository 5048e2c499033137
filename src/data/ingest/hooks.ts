// Runs the hooks of several observers of a merge, one after the other.
import type { MergeHooks } from './merge.ts'

export function together(...all: MergeHooks[]): MergeHooks {
  const each = (name: keyof MergeHooks) => async () => {
    for (const hooks of all) await hooks[name]?.()
  }
  return { beforeUpdate: each('beforeUpdate'), beforeAdd: each('beforeAdd') }
}
