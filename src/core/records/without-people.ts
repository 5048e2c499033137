// Records in two forms: whole, and for operators who may not see people.
import { type Fields, type Shape, shape } from '../../lib/shape/shape.ts'

/** Declares both. The description is that of the whole record, in which the fields of `personal` may be absent. */
export function withAndWithoutPeople(
  name: string,
  alias: string,
  personal: readonly string[],
  fields: Fields,
): [whole: Shape, withoutPeople: Shape] {
  const others = Object.fromEntries(Object.entries(fields).filter(([field]) => !personal.includes(field)))
  const whole = shape(name, alias, fields)
  const schema = { ...whole.schema, required: Object.keys(others) }
  return [{ ...whole, schema }, shape(name, alias, others)]
}
