// All operations of the operator's API, in the order of its description, and what each returns.
import type { TypeOf } from '../../lib/shape/schema.ts'
import { MODULES } from './groups.ts'
import type { Operation } from './operation.ts'

export const operations: readonly Operation[] = (await Promise.all(MODULES.map(([, load]) => load()))).flat()

/** The operation with this id. */
export function operationOf(id: string): Operation {
  const operation = operations.find((one) => one.id === id)
  if (!operation) throw new Error(`Bug: there is no operation ${id}.`)
  return operation
}

type Declared = Awaited<ReturnType<(typeof MODULES)[number][1]>>[number]

/** What each operation returns, by its id. */
export type Responses = { [O in Declared as O['id']]: TypeOf<O['response']> }
