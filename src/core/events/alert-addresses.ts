// The addresses that alerts are sent to: checked, sealed in the database, and shown without what is secret of them.
import { invalidValue } from '../../lib/errors.ts'
import { isMailAddress } from '../../lib/mail-settings.ts'
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { checkEndpointUrl } from './endpoints.ts'

export const DESTINATION_KINDS = ['webhook', 'slack', 'email'] as const
export type DestinationKind = (typeof DESTINATION_KINDS)[number]

// `webhook listen` forwards events, not alerts.
const LOCAL = 'For a program on this machine, set WEBHOOK_ALLOW_PRIVATE=true.'

/** The normalized address, or a 400. Host names are checked when a message is sent, as those of webhooks. */
export function checkAddress(kind: DestinationKind, address: string, rules: { allowPrivate: boolean }): string {
  if (kind !== 'email') return checkEndpointUrl(address, rules, 'address', LOCAL)
  if (isMailAddress(address)) return address
  throw invalidValue('address must be one e-mail address for the kind email.')
}

/** What pages, logs and the audit log may show: of the URL of a chat service only the host and its end. */
export function shownAddress(kind: DestinationKind, address: string): string {
  if (kind !== 'slack') return address
  return `${new URL(address).origin}/…${address.slice(-4)}`
}

const contextOf = (projectId: string, id: string) => `alert destination ${projectId}/${id}`

export const sealAddress = (seal: Seal, projectId: string, id: string, address: string): Buffer =>
  seal.seal(address, contextOf(projectId, id))

/** Throws if it was sealed under another master key. */
export const openAddress = (seal: Seal, projectId: string, id: string, sealed: string): string =>
  seal.open(bytesFromPg(sealed), contextOf(projectId, id))

/** Seals all addresses under another master key, and returns how many there are. Locks them until the end of the transaction. */
export async function resealAddresses(query: Query, from: Seal, to: Seal): Promise<number> {
  const rows = await query(
    'select project_id, id, address from alert_destinations order by project_id, id for no key update',
  )
  for (const { project_id, id, address } of rows) {
    const sealed = sealAddress(to, project_id!, id!, openAddress(from, project_id!, id!, address!))
    await query('update alert_destinations set address = $3 where project_id = $1 and id = $2', [
      project_id!,
      id!,
      sealed,
    ])
  }
  return rows.length
}

/** SQL: whether the destination `d` receives these messages. */
export const receives = (what: 'alert' | 'digest') => `(d.receives = '[]' or d.receives ? '${what}')`
