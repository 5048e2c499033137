// The operator's listener: the operator's API under /admin/v1, its description and its reference page.
import type { FastifyInstance } from 'fastify'
import type { App } from '../../app.ts'
import { OPERATOR_CODES } from '../../core/records/error-codes.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import { describeRoutes } from '../../lib/http/describe.ts'
import { type ListenerOptions, openListener } from '../../lib/http/listener.ts'
import { allowOwnHostsOnly } from '../../lib/http/own-hosts.ts'
import { describePages } from '../../lib/http/reference-page.ts'
import { serveAssets } from '../../server/pages/assets.ts'
import { serveGuides } from '../../server/pages/guides.ts'
import { refuseForAnyShard } from './all-shards.ts'
import { adminApi } from './api.ts'

const ABOUT = `
The operator's API of Tundish: find people and orders, refund, rotate keys, manage webhooks. Every operation is also a
command of \`tundish\`.

Send an operator key as \`Authorization: Bearer operator_…\`; \`tundish operator create\` makes one. Its role says which
operations it may call, and its reach for which organizations and projects. Every change writes an entry of the audit log in the same transaction.
`

const TAGS = [
  { name: 'Search', description: 'People, subscriptions and orders across all projects.' },
  { name: 'Orders', description: 'Custom charges with their timelines, and refunds.' },
  { name: 'Credits', description: 'Units of credits, their rules and ledger, and caps of charges.' },
  { name: 'Finance', description: 'Payments, refunds and chargebacks for bookkeeping.' },
  {
    name: 'Profiles',
    description: 'All data about a person, their erasure with its receipt, and subscriptions.',
  },
  { name: 'Webhooks', description: 'Endpoints that receive events.' },
  { name: 'Events', description: 'Events with their deliveries, and sending them again.' },
  { name: 'Figures', description: 'Revenue, funnels and subscriptions in numbers, by day.' },
  { name: 'Alerts', description: 'Rules on figures, the morning digest, and where their messages go.' },
  { name: 'State', description: 'Charges in progress, failures and lags at this moment.' },
  { name: 'Keys', description: 'Secret keys of organizations and projects; operator keys.' },
  { name: 'Tenants', description: 'Organizations, projects and merchant accounts.' },
  { name: 'Import', description: 'Records from other systems.' },
  { name: 'Audit', description: 'The log of the actions of operators.' },
]

/** The pages for people. */
interface Pages extends Pick<ListenerOptions, 'pathNotFound'> {
  mount: (scope: FastifyInstance, app: App) => Promise<void>
}

/** The operator's listener with every route, not yet listening. */
export async function adminListener(app: App, pages?: Pages): Promise<FastifyInstance> {
  const { mount, ...options } = pages ?? {}
  const { adminHost, adminHostNames, bounds: ofPublic } = app.config
  const { headerBytes, keepAliveTimeoutMs } = ofPublic
  const bounds = { headerBytes, keepAliveTimeoutMs }
  const listener = openListener(app.log, app.metrics.http, { bounds, censor: hideSecrets, ...options })
  allowOwnHostsOnly(listener, [adminHost, ...adminHostNames], 'ADMIN_HOST_NAMES')
  await describeRoutes(listener, {
    title: 'Tundish, the operator’s side',
    about: ABOUT,
    tags: TAGS,
    securitySchemes: { operatorKey: { type: 'http', scheme: 'bearer', description: 'An operator key.' } },
    errorCodes: OPERATOR_CODES,
  })
  describePages(listener)
  serveAssets(listener)
  serveGuides(listener)
  listener.register(async (scope) => {
    scope.addHook('onRequest', refuseForAnyShard('Each shard has its own metrics: read them at its own address.'))
    app.metrics.route(scope, app.providers)
  })
  listener.register((scope) => adminApi(scope, app), { prefix: '/admin/v1' })
  if (mount) listener.register((scope) => mount(scope, app))
  await listener.ready()
  return listener
}
