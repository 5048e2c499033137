// All operations of the operator's API, in the order of its description.
import { MODULES } from './groups.ts'
import type { Operation } from './operation.ts'

export const operations: readonly Operation[] = (await Promise.all(MODULES.map(([, load]) => load()))).flat()
