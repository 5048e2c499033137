// Billing on a database behind a proxy or pooler, with an organization whose project has people.
import { type Billing, type Organization, startBilling } from '../../support/billing.ts'
import { BASICS, insert } from '../../support/data.ts'
import type { ApiResponse } from '../../support/server.ts'

export interface CrowdedShop {
  billing: Billing
  shop: Organization
  /** The data API with the key of the organization's project. */
  get(path: string, query?: Record<string, string>): Promise<ApiResponse>
}

/** Serves with background work, with the database addresses in `env`; the project has these people besides the basics. */
export async function openCrowdedShop(
  env: Record<string, string>,
  people: { id: string; email: string }[],
): Promise<CrowdedShop> {
  const billing = await startBilling(env, { worker: true })
  const shop = await billing.organization()
  await insert(
    billing.db,
    { id: shop.projectId, organizationId: shop.id },
    { ...BASICS, profiles: [...BASICS.profiles!, ...people] },
  )
  const get = (path: string, query: Record<string, string> = {}) =>
    billing.server.api(`${path}?${new URLSearchParams(query)}`, { key: shop.projectKey })
  return { billing, shop, get }
}
