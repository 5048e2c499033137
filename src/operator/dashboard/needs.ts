// What each page and form of the dashboard needs: the operation that it is about. Pages and forms that an operator may not use are not
// linked or shown; the operation itself refuses them too.
import type { Access } from '../../core/tenants/access.ts'
import { operationOf, type Responses } from '../admin/operations.ts'
import { isOpenTo } from '../admin/reach.ts'

type Need = Parameters<typeof isOpenTo>[0]

/** By path; a text is the id of an operation. */
type Needs = Readonly<Record<string, keyof Responses | Need>>

/** A page that shows what no operation has. The path is that of an operation with the same reach. */
const OWN = {
  settings: { right: 'setup', path: '/projects/:project_id' },
  doctor: { right: 'setup', path: '/doctor' },
} as const satisfies Record<string, Need>

/** The page by its path, and the operation without which it would be empty. */
export const PAGE_NEEDS: Needs = {
  '/': 'getProjectFigures',
  '/funnels': 'getProjectFigures',
  '/funnels/:funnel_id': 'getProjectFigures',
  '/funnels/:funnel_id/screens/:screen_id': 'getAnswers',
  '/revenue': 'getProjectFigures',
  '/acquisition': 'getAcquisition',
  '/worth': 'getLifetime',
  '/experiments': 'getExperimentResults',
  '/hours': 'getToday',
  '/movements': 'getProjectFigures',
  '/churn': 'getChurn',
  '/subscriptions': 'getProjectFigures',
  '/subscriptions/:subscription_id': 'listProjectSubscriptions',
  '/charges': 'getProjectFigures',
  '/charges/:organization_id/:order_id': 'getOrder',
  '/declines': 'getProjectFigures',
  '/refunds': 'listMoneyBack',
  '/finance': 'getFinanceReport',
  '/finance/differences': 'listTieOutRows',
  '/payouts': 'listPayouts',
  '/credits': 'getCreditTotals',
  '/people': 'search',
  '/sessions': 'listProjectSessions',
  '/payments': 'listProjectPayments',
  '/people/:profile_id': 'getPerson',
  '/erasures': 'listErasures',
  '/erasures/:profile_id': 'getErasure',
  '/alerts': 'listAlerts',
  '/alerts/digest': 'listAlerts',
  '/webhooks': 'listWebhooks',
  '/webhooks/events/:event_id': 'getEvent',
  '/sync': 'listSyncReaders',
  '/doctor': OWN.doctor,
  '/audit': 'listAuditEntries',
  '/projects': 'listProjects',
  '/keys': 'listProjectKeys',
  '/merchant-accounts': 'listMerchantAccounts',
  '/settings': OWN.settings,
}

/** The form by the path that it is sent to, and its operation. */
export const FORM_NEEDS: Needs = {
  '/charges/:organization_id/:order_id/refund': 'refundOrder',
  '/charges/:organization_id/:order_id/resolve': 'resolveOrder',
  '/people/:profile_id/erase': 'eraseProfile',
  '/people/:profile_id/merge': 'mergeProfiles',
  '/people/:profile_id/credits/grant': 'grantCustomerCredits',
  '/people/:profile_id/credits/adjust': 'adjustCustomerCredits',
  '/people/:profile_id/credits/top-up': 'removeCustomerTopUp',
  '/finance/close': 'closeFinanceMonth',
  '/payouts/match': 'matchPayout',
  '/payouts/unmatch': 'unmatchPayout',
  '/alerts/new': 'putAlert',
  '/alerts/:alert_id/remove': 'removeAlert',
  '/alerts/destinations/new': 'putAlertDestination',
  '/alerts/destinations/:destination_id/remove': 'removeAlertDestination',
  '/alerts/hours': 'putAlertSettings',
  '/alerts/send': 'sendAlertNow',
  '/webhooks/new': 'createWebhook',
  '/webhooks/:webhook_id/switch': 'setWebhook',
  '/webhooks/:webhook_id/test': 'testWebhook',
  '/webhooks/:webhook_id/remove': 'removeWebhook',
  '/webhooks/events/:event_id/send': 'sendEventAgain',
  '/projects/new': 'createProject',
  '/projects/organizations': 'createOrganization',
  '/keys/organization/:owner_id': 'createOrganizationKey',
  '/keys/organization/:owner_id/:key_id/rotate': 'rotateOrganizationKey',
  '/keys/organization/:owner_id/:key_id/revoke': 'revokeOrganizationKey',
  '/keys/project/:owner_id': 'createProjectKey',
  '/keys/project/:owner_id/:key_id/rotate': 'rotateProjectKey',
  '/keys/project/:owner_id/:key_id/revoke': 'revokeProjectKey',
  '/merchant-accounts': 'setMerchantAccount',
  '/merchant-accounts/connect': 'connectMerchantAccount',
  '/merchant-accounts/disconnect': 'disconnectMerchantAccount',
  '/merchant-accounts/import': 'startStripeImport',
  '/merchant-accounts/import/stop': 'stopStripeImport',
  '/settings/charges': 'setOrganization',
  '/settings/erasures': 'setOrganization',
  '/settings/payments': 'setProjectWritePayments',
  '/settings/rates': 'setProjectRateLimit',
  '/settings/reporting': 'setProjectReporting',
  '/settings/figures': 'rebuildFigures',
}

/** The operator, and the organization that is chosen on the page. */
interface Who {
  access: Access
  organizationId: string | undefined
}

export function mayCall({ access, organizationId }: Who, need: keyof Responses | Need): boolean {
  const operation = typeof need === 'string' ? operationOf(need) : need
  if (!isOpenTo(operation, access)) return false
  const isOfWhole = operation.ofOrganization || (operation.path.includes(':organization_id') && !operation.narrows)
  if (!isOfWhole || !access.reach || organizationId === undefined) return true
  return access.reach.organizations.includes(organizationId)
}

/** `path` is that of a link to a page. */
export const mayOpen = (who: Who, path: string): boolean => isAllowed(PAGE_NEEDS, who, path)

/** `path` is that of a form. */
export const maySend = (who: Who, path: string): boolean => isAllowed(FORM_NEEDS, who, path)

/** The need of the page or form with this address; undefined if there is none. */
export function needOf(needs: Needs, href: string): Need | undefined {
  const [path = '/'] = href.split(/[?#]/, 1)
  // A fixed path comes before one with parameters that would match it too.
  const found = needs[path] ?? Object.entries(needs).find(([pattern]) => matches(pattern, path))?.[1]
  return typeof found === 'string' ? operationOf(found) : found
}

function isAllowed(needs: Needs, who: Who, href: string): boolean {
  const need = needOf(needs, href)
  if (!need) throw new Error(`Bug: dashboard/needs.ts does not say what ${href} needs.`)
  return mayCall(who, need)
}

function matches(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  return wanted.length === given.length && wanted.every((part, n) => part.startsWith(':') || part === given[n])
}
