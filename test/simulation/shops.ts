// The tenants of a seed: two organizations, three projects, merchant accounts with the same name, customers with cards.
import type { Database } from './database.ts'
import { ONE_STEP, TWO_STEPS, WITHHOLDING, WITHHOLDING_ACCOUNT } from './provider.ts'

export interface Customer {
  externalId: string
  project: string
  /** The profile to which it is linked at first. */
  profile: string | null
  /** `m2` is an account of the two-step provider, `m3` another, at which its customers pay later; `m4` one of the withholding one. */
  merchant: 'm1' | 'm2' | typeof WITHHOLDING_ACCOUNT
}

export interface Shop {
  organization: string
  projects: string[]
  customers: Customer[]
}

/** The names contain the seed, because all seeds share one database. */
export function shopsOf(seed: number): Shop[] {
  const one = `sim-${seed}-one`
  const two = `sim-${seed}-two`
  return [
    {
      organization: one,
      projects: [`${one}-app`, `${one}-web`],
      customers: [
        { externalId: 'ada', project: `${one}-app`, profile: 'pro_ada', merchant: 'm1' },
        { externalId: 'bob', project: `${one}-app`, profile: null, merchant: 'm1' },
        { externalId: 'eve', project: `${one}-app`, profile: 'pro_eve', merchant: 'm2' },
        { externalId: 'carl', project: `${one}-web`, profile: 'pro_carl', merchant: 'm2' },
        ...(hasWithholding(seed) ? ofWithholding(one) : []),
      ],
    },
    {
      organization: two,
      projects: [`${two}-app`],
      customers: [{ externalId: 'ada', project: `${two}-app`, profile: 'pro_ada', merchant: 'm1' }],
    },
  ]
}

/** A third of the seeds have three providers in one organization. */
export const hasWithholding = (seed: number) => seed % 3 === 0

const ofWithholding = (organization: string): Customer[] => [
  { externalId: 'fay', project: `${organization}-app`, profile: 'pro_fay', merchant: WITHHOLDING_ACCOUNT },
  { externalId: 'gus', project: `${organization}-web`, profile: 'pro_gus', merchant: WITHHOLDING_ACCOUNT },
]

export async function openShop(database: Database, { organization, projects, customers }: Shop): Promise<void> {
  const profiles = customers.filter(({ profile }) => profile !== null)
  await database.ask(0, TENANTS, [organization, projects])
  await database.ask(0, PROFILES, [profiles.map(({ project }) => project), profiles.map(({ profile }) => profile)])
  await database.ask(0, CUSTOMERS, [
    organization,
    customers.map(({ externalId }) => externalId),
    customers.map(({ project }) => project),
    customers.map(({ profile }) => profile),
  ])
  await database.ask(0, UNITS, [organization])
  await database.ask(0, TOP_UPS, [organization])
  await database.ask(0, CARDS, [
    organization,
    customers.map(({ externalId }) => externalId),
    customers.map(({ merchant }) => merchant),
    customers.map(({ merchant }) => PSP_OF[merchant]),
  ])
  for (const merchant of new Set(customers.map(({ merchant }) => merchant)))
    if (merchant !== 'm1') await database.ask(0, ACCOUNT, [organization, PSP_OF[merchant], merchant])
}

const PSP_OF = { m1: ONE_STEP, m2: TWO_STEPS, [WITHHOLDING_ACCOUNT]: WITHHOLDING } as const

/** The token of each customer's first card. */
export const FIRST_CARD = 'card'

/** Stores a payment at an account of the two-step provider, so that its card there is the saved one from now on. */
export async function payAt(
  database: Database,
  nowMs: number,
  organization: string,
  customer: Customer,
  merchant: string,
  { id, token }: { id: string; token: string },
) {
  await database.ask(nowMs, ACCOUNT, [organization, TWO_STEPS, merchant])
  await database.ask(nowMs, PAYMENT, [organization, customer.externalId, TWO_STEPS, merchant, id, token])
}

const ACCOUNT = {
  name: 'account of a seed',
  text: `
    insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, created_at, updated_at)
    values ($1, $2, $3, true, db_clock(), db_clock()) on conflict do nothing`,
}

// The row's own time is far in the past, so that it needs no lock of the organization's clock.
const PAYMENT = {
  name: 'payment at another account',
  text: `
    insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
      amount, currency_code, status, psp, psp_merchant_id, psp_transaction_type, payment_method_token, psp_date)
    select $1, $2, true, db_clock(), $5::uuid, $5::uuid,
      timestamptz '2019-01-01' + (select count(*) from report_transactions where organization_id = $1) * interval '1 second',
      5, 'EUR', 'succeeded', $3, $4, 'sale', $6, db_clock()`,
}

const TENANTS = {
  name: 'tenants of a seed',
  text: `
    with organization as (
      insert into organizations (id, name, one_off_charge_enabled) values ($1, $1, true)),
    clock as (insert into organization_clocks (organization_id) values ($1)),
    project as (insert into projects (id, organization_id, name) select id, $1, '' from unnest($2::text[]) id)
    insert into project_clocks (project_id) select id from unnest($2::text[]) id`,
}

// Each has an e-mail address, which an erasure removes.
const PROFILES = {
  name: 'profiles of a seed',
  text: `
    insert into profiles (project_id, id, created_at, updated_at, email, email_folded)
    select project, id, db_clock(), db_clock(), id || '@example.com', id || '@example.com'
    from unnest($1::text[], $2::text[]) p (project, id)`,
}

const CUSTOMERS = {
  name: 'customers of a seed',
  text: `
    insert into customers (organization_id, external_id, project_id, profile_id, created_at, updated_at)
    select $1, external_id, project, profile, db_clock(), db_clock()
    from unnest($2::text[], $3::text[], $4::text[]) c (external_id, project, profile)`,
}

const UNITS = {
  name: 'units of a seed',
  text: `
    with clock as (insert into credit_clocks (organization_id) values ($1))
    insert into credit_units (organization_id, unit, name, low_below, created_at) values ($1, 'tokens', 'Tokens', 3, db_clock())`,
}

// What each grants is more than the limit, so that it comes to rest.
const TOP_UPS = {
  name: 'top-ups of a seed',
  text: `
    with account as (
      insert into credit_accounts (organization_id, external_id, unit, account_id, created_at, updated_at)
      select organization_id, external_id, 'tokens', gen_random_uuid(), db_clock(), db_clock() from customers
      where organization_id = $1 and external_id in ('ada', 'eve') returning organization_id, external_id)
    insert into credit_top_ups (organization_id, external_id, unit, top_up_id, status, below, amount, currency_code, grants,
      most_per_day, most_per_month, due_at, created_at, updated_at)
    select organization_id, external_id, 'tokens', gen_random_uuid(), 'on', 4, 0.02, 'EUR', 9, 2, 5, db_clock(), db_clock(), db_clock()
    from account`,
}

const CARDS = {
  name: 'cards of a seed',
  text: `
    insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
      amount, currency_code, status, psp, psp_merchant_id, psp_transaction_type, payment_method_token)
    select $1, external_id, true, db_clock(), gen_random_uuid(), gen_random_uuid(),
      timestamptz '2020-01-01' + n * interval '1 day', 5, 'EUR', 'succeeded', psp, merchant, 'sale', '${FIRST_CARD}'
    from unnest($2::text[], $3::text[], $4::text[]) with ordinality c (external_id, merchant, psp, n)`,
}
