// Records in two forms: whole, and for operators who may not see people.
import type { Fields, RecordOf } from '../../lib/shape/fields.ts'
import { type Shape, shape } from '../../lib/shape/shape.ts'

/** Declares both. The description is that of the whole record, in which the fields of `personal` may be absent. */
export function withAndWithoutPeople<F extends Fields, const P extends keyof F & string>(
  name: string,
  alias: string,
  personal: readonly P[],
  fields: F,
): [whole: Shape<WithoutPeople<F, P>>, withoutPeople: Shape<WithoutPeople<F, P>>] {
  const others = Object.fromEntries(Object.entries(fields).filter(([field]) => !personal.includes(field as P)))
  const whole = shape(name, alias, fields)
  const schema = { ...whole.schema, required: Object.keys(others) }
  return [{ ...whole, schema }, shape(name, alias, others) as Shape<object> as Shape<WithoutPeople<F, P>>]
}

type WithoutPeople<F, P extends keyof F> = Omit<RecordOf<F>, P> & Partial<Pick<RecordOf<F>, P>>
