// Each response of a listener has a status and an error code that its OpenAPI description names.
import assert from 'node:assert/strict'
import { OPERATOR_CODES, PUBLIC_CODES } from '../../src/core/records/error-codes.ts'

type Listener = 'public' | 'operator'
interface Operation {
  method: string
  path: RegExp
  statuses: ReadonlySet<string>
}

// Of any address, before an operation is found.
const TOO_LONG = [414, 431]
const CODES = { public: PUBLIC_CODES, operator: OPERATOR_CODES }
const operations: Partial<Record<Listener, Promise<Operation[]>>> = {}

/**
 * Fails if an error has no `X-Error-Code` that is described for its status, or a success has one; or if the operation is described
 * without the status. A path or method without an operation may have any.
 */
export async function checkDescribed(
  listener: Listener,
  address: string,
  [method, path]: [method: string, path: string],
  { status, code }: { status: number; code: string | undefined },
): Promise<void> {
  const described = status < 400 ? code === undefined : CODES[listener][code ?? '']?.status === status
  assert.ok(described, `a ${status} has the error code ${code}`)
  if (TOO_LONG.includes(status)) return
  operations[listener] ??= readOperations(address)
  const [pathname] = path.split('?')
  const operation = (await operations[listener]).find((one) => one.method === method && one.path.test(pathname!))
  if (operation) assert.ok(operation.statuses.has(`${status}`), `${method} ${path} is described without ${status}`)
}

/** The operations of a listener, those whose paths have fewer parameters first. */
async function readOperations(address: string): Promise<Operation[]> {
  const { paths } = (await (await fetch(`${address}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { responses: object }>>
  }
  return Object.entries(paths)
    .sort(([one], [other]) => one.split('{').length - other.split('{').length)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { responses }]) => ({
        method: method.toUpperCase(),
        // No organization is called `public`.
        path: new RegExp(`^${path.replaceAll(/\{[a-z_]+\}/g, '(?!public/)[^/]+')}$`),
        statuses: new Set(Object.keys(responses)),
      })),
    )
}
