// SQL conditions on a staged row `s` and the stored row `t` of the same key.

import type { Kind, Scope, Tenant } from '../../core/records/record.ts'
import { columnsOf } from './row.ts'

export const UPDATED_AT = 'updated_at'
// The `updated_at` of a line is compared with this: the time of the last line, or the stamp if that line had none.
export const SOURCE = 'source_updated_at'
const STORED = `coalesce(t.${SOURCE}, t.updated_at)`

/** SQL: whether the stored row `t` and the staged row `s` have the same key. */
export function sameKey(kind: Kind, tenant: Tenant): string {
  const key = kind.key.map((column) => `t.${column} = s.${column}`)
  return [`t.${kind.tenant} = ${tenant[kind.tenant]}`, ...key].join(' and ')
}

/** SQL: whether the staged row `s` would change the stored row `t`. */
export function isChanged(kind: Kind): string {
  const content = (row: string) =>
    contentOf(kind)
      .map(({ name, json }) => `${row}.${name}${json ? '::text' : ''}`)
      .join(', ')
  return `row(${content('t')}) is distinct from row(${content('s')})`
}

/** SQL: whether the staged row `s` leaves the stored row `t` with its content and its stamp. */
export function isUnchanged(kind: Kind, { live }: Scope): string {
  return `not (${isChanged(kind)}${live ? '' : isRedated(kind)})`
}

/** SQL, after a condition: or the line has another time than the last one, whose time is not `updated_at` after a stamp. */
export function isRedated(kind: Kind): string {
  return isDated(kind) ? ` or (s.updated_at is not null and s.updated_at is distinct from t.${SOURCE})` : ''
}

/** SQL: whether the staged row `s` leaves the stored one, `t`, unchanged. */
export function isSkipped(kind: Kind): string {
  return `${isDated(kind) ? `s.updated_at < ${STORED}` : 'false'} or ${kind.readOnlyRows?.('t') ?? 'false'}`
}

export const isDated = (kind: Kind) => kind.fields.some(({ name }) => name === UPDATED_AT)

/** Columns that an update leaves alone. */
const isFixed = (kind: Kind, name: string) =>
  name === UPDATED_AT || kind.key.includes(name) || (kind.kept?.includes(name) ?? false)

export const contentOf = (kind: Kind) => columnsOf(kind).filter(({ name }) => !isFixed(kind, name))
