// Keys of other accounts: they are valid, and none of the objects of this account exist there.
import type { Form } from '../../lib/http/form.ts'
import { missing } from './errors.ts'

export class OtherAccounts {
  readonly #accounts = new Map<string, string>()

  /** From now on the key is one of this account. */
  assign(secretKey: string, accountId: string): void {
    this.#accounts.set(secretKey, accountId)
  }

  of(secretKey: string | undefined): string | undefined {
    return secretKey === undefined ? undefined : this.#accounts.get(secretKey)
  }
}

/** The response of an account without objects; undefined for calls that do not depend on objects, such as the one for the balance. */
export function responseOfEmptyAccount({
  method,
  path,
  params,
}: {
  method: string
  path: string
  params: Form
}): object | undefined {
  const [collection, object] = path.split('/').slice(2)
  if (collection === 'balance' || collection === 'country_specs' || collection === 'account') return undefined
  if (method === 'GET' && object === undefined) return { object: 'list', url: path, has_more: false, data: [] }
  const named = ['customer', 'payment_method', 'payment_intent', 'charge'].find((name) => params[name])
  if (object === undefined && named) throw missing(named, String(params[named]), named, 400)
  throw missing(String(collection).replace(/s$/, ''), object ?? '', 'id', 404)
}
