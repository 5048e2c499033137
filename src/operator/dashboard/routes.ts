// The routes of the dashboard: pages, and the actions of forms.

import { connect, disconnect, merchantAccounts, setMerchantAccount } from './pages/accounts.ts'
import { acquisition } from './pages/acquisition.ts'
import { alerts, putDestination, putRule, removeDestination, removeRule, saveHours, sendNow } from './pages/alerts.ts'
import { answers } from './pages/answers.ts'
import { charge, refundCharge, resolveCharge } from './pages/charge.ts'
import { charges } from './pages/charges.ts'
import { churn } from './pages/churn.ts'
import { credits } from './pages/credits.ts'
import { declines } from './pages/declines.ts'
import { digest } from './pages/digest.ts'
import { erasePerson, erasures, receipt } from './pages/erasures.ts'
import { experiments } from './pages/experiments.ts'
import { closeMonth, finance } from './pages/finance.ts'
import { differences } from './pages/finance-tie-out.ts'
import { funnel, funnels } from './pages/funnels.ts'
import { hours } from './pages/hours.ts'
import { keys, makeKey, revokeKey, rotateKey } from './pages/keys.ts'
import { movements } from './pages/movements.ts'
import { audit, doctor, sync } from './pages/operations.ts'
import { matchPayout, payouts, unmatchPayout } from './pages/payouts.ts'
import { people } from './pages/people.ts'
import { person } from './pages/person.ts'
import { adjustOfPerson, grantToPerson, removeTopUpOfPerson } from './pages/person-credits.ts'
import { mergePerson } from './pages/person-twins.ts'
import { makeOrganization, makeProject, projects } from './pages/projects.ts'
import { refunds } from './pages/refunds.ts'
import { revenue } from './pages/revenue.ts'
import { payments, sessions } from './pages/sessions.ts'
import {
  rebuild,
  saveCharges,
  saveErasures,
  savePayments,
  saveRate,
  saveReporting,
  settings,
} from './pages/settings.ts'
import { startImport, stopImport } from './pages/stripe-imports.ts'
import { subscription } from './pages/subscription.ts'
import { subscriptions } from './pages/subscriptions.ts'
import { today } from './pages/today.ts'
import {
  addEndpoint,
  event,
  removeEndpoint,
  sendEvent,
  switchEndpoint,
  testEndpoint,
  webhooks,
} from './pages/webhooks.ts'
import { worth } from './pages/worth.ts'
import type { Page } from './shell.ts'
import type { View } from './view.ts'

/** Returns a page, or the address to redirect to. */
export type Route = (view: View) => Promise<Page | string>

/** Returns the address to redirect to, or a page that is shown once. */
export type Form = (view: View, form: URLSearchParams) => Promise<string | Page>

export const pages: Record<string, Route> = {
  '/': today,
  '/funnels': funnels,
  '/funnels/:funnel_id': funnel,
  '/funnels/:funnel_id/screens/:screen_id': answers,
  '/revenue': revenue,
  '/acquisition': acquisition,
  '/worth': worth,
  '/experiments': experiments,
  '/hours': hours,
  '/movements': movements,
  '/churn': churn,
  '/subscriptions': subscriptions,
  '/subscriptions/:subscription_id': subscription,
  '/charges': charges,
  '/charges/:organization_id/:order_id': charge,
  '/declines': declines,
  '/refunds': refunds,
  '/finance': finance,
  '/finance/differences': differences,
  '/payouts': payouts,
  '/credits': credits,
  '/people': people,
  '/sessions': sessions,
  '/payments': payments,
  '/people/:profile_id': person,
  '/erasures': erasures,
  '/erasures/:profile_id': receipt,
  '/alerts': alerts,
  '/alerts/digest': digest,
  '/webhooks': webhooks,
  '/webhooks/events/:event_id': event,
  '/sync': sync,
  '/doctor': doctor,
  '/audit': audit,
  '/projects': projects,
  '/keys': keys,
  '/merchant-accounts': merchantAccounts,
  '/settings': settings,
}

export const actions: Record<string, Form> = {
  '/charges/:organization_id/:order_id/refund': refundCharge,
  '/charges/:organization_id/:order_id/resolve': resolveCharge,
  '/people/:profile_id/erase': erasePerson,
  '/people/:profile_id/merge': mergePerson,
  '/people/:profile_id/credits/grant': grantToPerson,
  '/people/:profile_id/credits/adjust': adjustOfPerson,
  '/people/:profile_id/credits/top-up': removeTopUpOfPerson,
  '/finance/close': closeMonth,
  '/payouts/match': matchPayout,
  '/payouts/unmatch': unmatchPayout,
  '/alerts/new': putRule,
  '/alerts/:alert_id/remove': removeRule,
  '/alerts/destinations/new': putDestination,
  '/alerts/destinations/:destination_id/remove': removeDestination,
  '/alerts/hours': saveHours,
  '/alerts/send': sendNow,
  '/webhooks/new': addEndpoint,
  '/webhooks/:webhook_id/switch': switchEndpoint,
  '/webhooks/:webhook_id/test': testEndpoint,
  '/webhooks/:webhook_id/remove': removeEndpoint,
  '/webhooks/events/:event_id/send': sendEvent,
  '/projects/new': makeProject,
  '/projects/organizations': makeOrganization,
  '/keys/:owner/:owner_id': makeKey,
  '/keys/:owner/:owner_id/:key_id/rotate': rotateKey,
  '/keys/:owner/:owner_id/:key_id/revoke': revokeKey,
  '/merchant-accounts': setMerchantAccount,
  '/merchant-accounts/connect': connect,
  '/merchant-accounts/disconnect': disconnect,
  '/merchant-accounts/import': startImport,
  '/merchant-accounts/import/stop': stopImport,
  '/settings/charges': saveCharges,
  '/settings/erasures': saveErasures,
  '/settings/payments': savePayments,
  '/settings/rates': saveRate,
  '/settings/reporting': saveReporting,
  '/settings/figures': rebuild,
}

/** The page at a path, with the values of its parameters. */
export function routeOf(path: string): { show: Route; params: Record<string, string> } | undefined {
  for (const [pattern, show] of Object.entries(pages)) {
    const found = new RegExp(`^${pattern.replace(/:([a-z_]+)/g, '(?<$1>[^/]+)')}$`).exec(path)
    if (found) return { show, params: decoded(found.groups ?? {}) }
  }
  return undefined
}

const decoded = (groups: Record<string, string>) =>
  Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decodeURIComponent(value)]))
