// Makes Stripe's texts fit the limits of the import: Stripe allows longer ones.
import { fitted, type Type } from '../../../core/records/import/fields.ts'
import { KINDS } from '../../../core/records/records.ts'
import { bytesText } from '../../../lib/text.ts'
import { idIn, type Line } from './convert.ts'
import { type Naming, shortened } from './tally.ts'

const FIELDS = new Map(
  KINDS.map(({ name, fields }) => [name, fields.filter(({ type }) => type.maxBytes !== undefined)]),
)

/**
 * Cuts names and free texts that are too long, leaves out other values, and names both. An id, or another value that
 * the record cannot be without, stays: its line is rejected.
 */
export function fitLines(rejecting: Naming, lines: readonly Line[]): void {
  for (const line of lines) {
    for (const { name, type } of FIELDS.get(line.record) ?? []) {
      const given = line.data[name]
      if (given === null || given === undefined) continue
      const fits = fittedValue(given, type)
      if (fits === given || (fits === null && type.required)) continue
      line.data[name] = fits
      const what = fits === null ? 'was left out' : 'was cut'
      shortened(rejecting, idIn(line), `${line.record}.${name} ${what}: it has more than ${bytesText(type.maxBytes!)}`)
    }
  }
}

function fittedValue(value: unknown, type: Type): unknown {
  if (!type.json) return typeof value === 'string' ? fitted(value, type) : value
  return fitted(JSON.stringify(value), type) === null ? null : value
}
