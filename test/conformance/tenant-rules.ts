// The rule of tenant isolation for each operation of the three interfaces, by its operationId: the table of tenant-matrix.test.ts.
import { randomUUID } from 'node:crypto'
import type { Tenant } from './tenant-pair.ts'

/** The response to a tenant that names another tenant's object. */
export type Foreign =
  /** This status with the same message as for an object that does not exist; nothing is changed. */
  | { like: 'absent'; status: 400 | 404 | 200 }
  /** Ids are per tenant: it gets its own object with that id, and the other's is unchanged. */
  | { like: 'own' }
  /** Ids are shared by all tenants: the id is taken. Only for operators. */
  | { like: 'taken'; status: 409 }
  /** The request names only the tenant. */
  | { like: 'unnamed' }

export interface Rule {
  foreign: Foreign
  /** Concerns all tenants, for the operator of the installation. */
  everywhere?: boolean
  /** The status for the tenant's own objects if a success needs more than the database; by default 200. */
  own?: number
  /** Nothing is done with the tenant's own objects here, so that there is no entry in the audit log: `api.test.ts` has one. */
  undone?: boolean
  /** Its response has sums alone, which name nothing. Those of other tenants are missing in tests of figures. */
  sums?: boolean
  /** Needs no key and has no tenant. */
  open?: boolean
  /** The request names objects of `it`; the caller is `ours`. */
  query?: (it: Tenant) => Record<string, string>
  body?: (it: Tenant, ours: Tenant) => object | string
}

const absent = (status: 400 | 404 | 200): Foreign => ({ like: 'absent', status })
const unnamed: Foreign = { like: 'unnamed' }

/** The path names an object. */
const item: Rule = { foreign: absent(404) }
/** All objects of the tenant, and nothing else. */
const list: Rule = { foreign: unnamed }
const sums: Rule = { foreign: unnamed, sums: true }
const everywhere: Rule = { foreign: unnamed, everywhere: true }
const open: Rule = { foreign: unnamed, open: true }
/** A list filtered by another tenant's object is empty. */
const filtered = (query: Rule['query']): Rule => ({ foreign: absent(200), query })
const set = (body: object): Rule => ({ foreign: unnamed, body: () => body })

const everyFunnel = { metric: 'sessions', by: 'funnel', from: '2020-01-01', to: '2029-12-31', test: 'true' }

const everySource = { by: 'funnel', from: '2020-01-01', to: '2029-12-31', test: 'true' }
const everyCohort = { by: 'product', since: 'payment', from: '2020-01-01', to: '2029-12-31', test: 'true' }

export const RULES: Record<string, Rule> = {
  getLiveness: open,
  getReadiness: open,
  // The provider's signature authenticates it; see test/notifications.
  receiveProviderNotification: open,

  listFunnels: filtered((it) => ({ 'filter[alias]': it.mark })),
  getFunnel: item,
  listExperiments: list,
  listReplies: filtered((it) => ({ 'filter[funnel_id]': it.mark })),
  exportRecords: list,
  listProfiles: filtered((it) => ({ 'filter[funnel_id]': it.mark })),
  getProfile: item,
  listSessions: filtered((it) => ({ 'filter[profile_id]': it.mark })),
  getSession: item,
  listSessionReplies: item,
  listSubscriptions: filtered((it) => ({ 'filter[product_id]': it.mark })),
  getSubscription: item,
  listProducts: list,
  getProduct: item,
  listTransactions: filtered((it) => ({ 'filter[subscription_id]': it.mark })),
  // A reference to a record of another project is one to a record that does not exist.
  writeRecords: {
    foreign: absent(400),
    body: (it) => ({
      records: [{ record: 'session', data: { id: 'new', created_at: '2026-01-01T00:00:00Z', profile_id: it.mark } }],
    }),
  },
  anonymizeProfiles: { foreign: absent(404), body: (it) => ({ profile_ids: [it.mark] }) },

  createOneOffCharge: {
    foreign: absent(400),
    body: (it) => ({
      external_id: it.customer,
      amount: 10,
      currency_code: 'USD',
      idempotency_key: randomUUID(),
    }),
  },
  createRefund: {
    foreign: absent(400),
    body: (it, ours) => ({ external_id: ours.customer, order_id: it.order, ...partOfIt() }),
  },
  listMyAssets: { foreign: absent(200), body: (it) => ({ external_id: it.customer }) },
  spendCredits: { foreign: absent(400), body: (it) => creditsOf(it) },
  holdCredits: { foreign: absent(400), body: (it) => creditsOf(it) },
  captureCredits: {
    foreign: absent(400),
    body: (it) => ({ hold_id: it.order, idempotency_key: randomUUID() }),
  },
  releaseCredits: {
    foreign: absent(400),
    own: 400,
    body: (it) => ({ hold_id: it.order, idempotency_key: randomUUID() }),
  },
  grantCredits: { foreign: absent(400), body: (it) => creditsOf(it) },
  adjustCredits: { foreign: absent(400), body: (it) => ({ ...creditsOf(it), reason: 'asked' }) },
  listCreditBalances: { foreign: absent(200), body: (it) => ({ external_id: it.customer }) },
  listCreditEntries: { foreign: absent(200), body: (it) => ({ external_id: it.customer }) },
  setTopUp: { foreign: absent(400), body: (it) => topUpOf(it) },
  removeTopUp: { foreign: absent(400), body: (it) => ({ external_id: it.customer, unit: it.mark }) },
  listTopUps: { foreign: absent(200), body: (it) => ({ external_id: it.customer }) },
  listConsumables: list,
  listSettledRefunds: list,
  listDisputes: list,
  reportTransactions: set({ last_transaction_date: '2000-01-01T00:00:00Z' }),

  search: { ...everywhere, query: () => ({ q: 'mine' }) },
  listOrders: filtered((it) => ({ external_id: it.customer })),
  getOrder: item,
  refundOrder: { ...item, body: () => partOfIt() },
  listStuckOrders: everywhere,
  listStuckRefunds: everywhere,
  getFinanceReport: { ...list, query: () => ({ ...ALWAYS, test: 'true' }) },
  listFinanceRows: { ...list, query: () => ({ ...ALWAYS, test: 'true' }) },
  listPayouts: list,
  listBalanceEntries: list,
  getUnpaidBalance: list,
  matchPayout: { ...item, body: () => ({ day: '2026-01-02', amount: 5 }) },
  unmatchPayout: item,
  listFinanceMonths: list,
  closeFinanceMonth: set({ month: '2025-12' }),
  getTieOut: { ...list, query: () => ({ month: '2026-01' }) },
  listTieOutRows: { ...list, query: () => ({ month: '2026-01' }) },
  eraseProfile: item,
  // Of a tenant's own objects both names are the same one, which cannot be merged into itself.
  listWaitingLinks: list,
  previewMerge: { ...item, own: 409 },
  mergeProfiles: { ...item, own: 409, undone: true },

  listWebhooks: list,
  createWebhook: set({ url: 'http://127.0.0.1:9/' }),
  getWebhook: item,
  setWebhook: { ...item, body: () => ({ kinds: ['charge.failed'] }) },
  removeWebhook: item,
  testWebhook: item,

  getExchangeRates: list,
  listAlerts: list,
  putAlert: { foreign: { like: 'own' }, body: () => ({ metric: 'sessions', condition: 'below', threshold: 5 }) },
  removeAlert: item,
  getAlertSettings: sums,
  putAlertSettings: set({ digest_hour: 7 }),
  listAlertDestinations: list,
  putAlertDestination: {
    foreign: { like: 'own' },
    body: () => ({ kind: 'slack', address: 'http://127.0.0.1:9/alerts' }),
  },
  removeAlertDestination: item,
  listAlertMessages: list,
  sendAlertNow: { foreign: absent(404), body: (it) => ({ destination_id: it.mark }) },

  listEvents: filtered((it) => ({ object_id: it.mark })),
  getEvent: item,
  sendEventAgain: { ...item, body: (it) => ({ endpoint_id: it.webhook }) },
  listAttempts: { foreign: absent(200) },
  listDeliveries: filtered((it) => ({ event_id: it.event })),
  listFailingDeliveries: everywhere,

  getProjectFigures: { ...list, query: () => everyFunnel },
  getOrganizationFigures: { ...list, query: () => everyFunnel },
  rebuildFigures: list,
  getAcquisition: { ...list, query: () => everySource },
  getChurn: { ...sums, query: () => everySource },
  getRenewalForecast: sums,
  getAnswers: sums,
  getToday: sums,
  getLifetime: { ...list, query: () => everyCohort },
  getExperimentResults: list,
  loadSpend: set({ rows: [{ day: '2026-01-31', source: 'google', currency: 'USD', amount: '1.00' }] }),

  getPerson: item,
  compareLedgers: everywhere,
  listErasures: list,
  getErasure: item,
  listProjectProfiles: list,
  listProjectSubscriptions: filtered((it) => ({ product_id: it.mark })),
  listRefunds: list,
  listMoneyBack: list,
  listLostMovements: list,
  // The account of the matrix is not connected to a provider.
  adoptLostMovement: { ...item, body: () => ({}), own: 409 },
  acceptLostMovement: { ...item, body: () => ({ because: 'test' }) },
  resolveOrder: { ...item, body: () => ({ as: 'failed', because: 'test' }), own: 409 },
  getProjectState: list,
  getProjectSetup: list,
  getFunnelScreens: item,
  listProjectSessions: list,
  listProjectPayments: list,
  listDeclinedPayments: list,
  getProjectNames: list,
  getWebhookStatistics: list,
  listSyncReaders: list,
  listRecordWriters: list,

  listOrganizationKeys: list,
  createOrganizationKey: set({ name: 'further' }),
  rotateOrganizationKey: { ...item, body: () => ({}) },
  revokeOrganizationKey: item,
  listProjectKeys: list,
  createProjectKey: set({ name: 'further' }),
  rotateProjectKey: { ...item, body: () => ({}) },
  revokeProjectKey: item,
  listOperators: everywhere,
  confirmRestoredKeys: { ...everywhere, own: 409, undone: true },

  listOrganizations: everywhere,
  createOrganization: {
    foreign: { like: 'taken', status: 409 },
    everywhere: true,
    body: (it, ours) => ({ id: it === ours ? 'another' : it.organization }),
  },
  getOrganization: list,
  setOrganization: set({ one_off_charge_enabled: true }),
  listProjects: everywhere,
  createProject: {
    foreign: { like: 'taken', status: 409 },
    body: (it, ours) => ({ id: it === ours ? 'mine-too' : it.project }),
  },
  getProject: list,
  listMerchantAccounts: list,
  connectMerchantAccount: {
    foreign: absent(400),
    own: 400,
    body: () => ({ sandbox: true, secret_key: 'sk_test_12345678' }),
  },
  disconnectMerchantAccount: item,
  startStripeImport: { ...item, body: () => ({}) },
  listStripeImports: list,
  getStripeImport: item,
  stopStripeImport: item,
  setMerchantAccount: { foreign: { like: 'own' }, body: () => ({ region: 'eu' }) },
  setOrganizationRateLimit: set({ rate_limit: 'default' }),
  setProjectRateLimit: set({ rate_limit: 'default' }),
  setProjectWritePayments: set({ write_payments: false }),
  setProjectReporting: set({ time_zone: 'UTC' }),

  getCreditTotals: list,
  getCreditDays: { ...list, query: () => ({ from: dayFrom(-30) }) },
  listCreditGrants: filtered((it) => ({ external_id: it.customer })),
  listCreditHolds: filtered((it) => ({ external_id: it.customer })),
  getCreditBalances: filtered((it) => ({ external_id: it.customer })),
  listOrganizationCreditEntries: filtered((it) => ({ external_id: it.customer })),
  grantCustomerCredits: { foreign: absent(400), body: (it) => creditsOf(it) },
  adjustCustomerCredits: { foreign: absent(400), body: (it) => ({ ...creditsOf(it), reason: 'asked' }) },
  listOrganizationTopUps: filtered((it) => ({ external_id: it.customer })),
  setCustomerTopUp: { foreign: absent(400), body: (it) => topUpOf(it) },
  removeCustomerTopUp: { foreign: absent(400), body: (it) => ({ external_id: it.customer, unit: it.mark }) },
  setCredits: set({ debt: true }),
  listCreditUnits: list,
  createCreditUnit: { foreign: unnamed, own: 409, undone: true, body: () => ({}) },
  setCreditUnit: { ...item, body: () => ({ name: 'Mine' }) },
  listCreditRules: list,
  setCreditRule: { ...item, body: () => ({ ...CHARGE_OF_RULE, amount: 1 }) },
  listChargeCaps: list,
  setChargeCap: set({ scope: 'organization', per: 'day', most: 1000 }),
  removeChargeCap: set({ scope: 'organization', per: 'day' }),
  removeCreditRule: { ...item, body: () => CHARGE_OF_RULE },

  listAuditEntries: everywhere,
  verifyAudit: everywhere,

  importRecords: {
    foreign: { like: 'own' },
    body: (it) => {
      const data = { id: it.mark, title: 'Imported', created_at: '2026-01-01T00:00:00Z' }
      return `${JSON.stringify({ record: 'funnel', data })}\n`
    },
  },
}

const CHARGE_OF_RULE = { currency_code: 'USD', charged: '5' }

const creditsOf = (it: Tenant) => ({
  external_id: it.customer,
  unit: it.mark,
  amount: 1,
  idempotency_key: randomUUID(),
})

const topUpOf = (it: Tenant) => ({
  external_id: it.customer,
  unit: it.mark,
  below: 1,
  ...{ amount: 5, currency_code: 'USD', grants: 1, most_per_day: 1, most_per_month: 1 },
})

/** A refund of a part, so that the next one is possible. */
const partOfIt = () => ({ amount: '1.00', idempotency_key: randomUUID() })

// A period with all data, within three years.
const dayFrom = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
const ALWAYS = { from: dayFrom(-700), to: dayFrom(2) }
