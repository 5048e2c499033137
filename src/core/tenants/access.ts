// What operators may do: roles with their rights, and the reach, which is the part of the installation that they see.
import type { Query } from '../../lib/pg/types.ts'

export const ROLES = ['owner', 'developer', 'support', 'finance', 'analyst', 'read'] as const
export type Role = (typeof ROLES)[number]

const SEEING: readonly Role[] = ['owner', 'developer', 'support', 'read']

/** The rights that operations need, each with the roles that have it. */
export const RIGHTS = {
  /** Figures, and the names of organizations, projects, funnels and products. */
  figures: ROLES,
  /** Payments, refunds and chargebacks one by one, without what identifies people unless the role has `people`. */
  reports: ['owner', 'developer', 'support', 'finance', 'read'],
  /** People with their records, orders and events. */
  people: SEEING,
  /** Settings, keys, webhooks, imports, readers, the audit log and the doctor. */
  setup: SEEING,
  /** Refunds; `support` up to its limit. */
  refund: ['owner', 'support'],
  /** Closing months of the finance report, and ticking off payouts. */
  books: ['owner', 'finance'],
  erase: ['owner', 'support'],
  /** Sending an event again. */
  send: ['owner', 'developer', 'support'],
  keys: ['owner', 'developer'],
  webhooks: ['owner', 'developer'],
  imports: ['owner', 'developer'],
  /** Merchant accounts and their credentials. */
  accounts: ['owner', 'developer'],
  /** Everything else: tenants and their rules, credits, outcomes set by hand, merges. */
  manage: ['owner'],
} as const satisfies Record<string, readonly Role[]>
export type Right = keyof typeof RIGHTS

/** Organizations with all of their projects, and single projects. */
export interface Reach {
  organizations: readonly string[]
  projects: readonly string[]
}

/** The most that may be refunded of one charge, in major units by currency: `{"USD": "50"}`. */
export type RefundLimits = Readonly<Record<string, string>>

export interface Access {
  role: Role
  /** Null is the whole installation. */
  reach: Reach | null
  /** Null is no limit. */
  refundLimits: RefundLimits | null
}

/** That of the command line: an account that may run commands has the database itself. */
export const FULL_ACCESS: Access = { role: 'owner', reach: null, refundLimits: null }

export const hasRight = ({ role }: Pick<Access, 'role'>, right: Right): boolean =>
  (RIGHTS[right] as readonly Role[]).includes(role)

export async function reachesProject(query: Query, reach: Reach | null, id: string): Promise<boolean> {
  if (!reach || reach.projects.includes(id)) return true
  if (reach.organizations.length === 0) return false
  const rows = await query('select 1 from projects where id = $1 and organization_id = any($2)', [
    id,
    reach.organizations,
  ])
  return rows.length > 0
}

/** `whole`: with all of its projects. `part`: only some of its projects. */
export async function reachOfOrganization(
  query: Query,
  reach: Reach | null,
  id: string,
): Promise<'whole' | 'part' | 'none'> {
  if (!reach || reach.organizations.includes(id)) return 'whole'
  if (reach.projects.length === 0) return 'none'
  const rows = await query('select 1 from projects where organization_id = $1 and id = any($2) limit 1', [
    id,
    reach.projects,
  ])
  return rows.length > 0 ? 'part' : 'none'
}
