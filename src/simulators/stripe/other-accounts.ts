// What is different for the keys of other accounts, which have no objects.
import type { Form } from '../../lib/http/form.ts'
import { missing } from './errors.ts'

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
