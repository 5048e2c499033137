// The demo's products and funnels.
import { minorUnits } from '../../lib/money.ts'
import { DOLLARS } from './places.ts'

export interface Plan {
  id: string
  name: string
  interval: 'day' | 'week' | 'month' | 'year'
  count: number
  /** In US dollars; `priceIn` converts it to a usual price in another currency. */
  dollars: number
  /** Days of trial and its price in US dollars. */
  trial?: { days: number; dollars: number }
  status: 'active' | 'archived'
  description: string
}

export const PLANS: readonly Plan[] = [
  plan('weekly', 'Weekly plan', ['week', 1, 6.99], 'A new plan every week.', { days: 3, dollars: 0 }),
  plan('monthly', 'Monthly plan', ['month', 1, 19.99], 'Everything, month by month.', { days: 7, dollars: 1 }),
  plan('quarterly', 'Quarterly plan', ['month', 3, 44.99], 'Three months at the price of two and a bit.'),
  plan('yearly', 'Yearly plan', ['year', 1, 119.99], 'A whole year, best value.', { days: 14, dollars: 0 }),
  { ...plan('starter', 'Starter plan', ['day', 10, 9.99], 'Ten days to begin with.'), status: 'archived' },
]

function plan(
  id: string,
  name: string,
  [interval, count, dollars]: [Plan['interval'], number, number],
  description: string,
  trial?: Plan['trial'],
): Plan {
  return { id: `prod_${id}`, name, interval, count, dollars, trial, status: 'active', description }
}

/** A price in the currency's minor unit: whole units and 99 hundredths, or whole tens where there are no hundredths. */
export function priceIn(currency: string, dollars: number): number {
  const units = dollars / (DOLLARS[currency] ?? 1)
  if (dollars === 0) return 0
  if (minorUnits(currency) === 0) return Math.max(100, Math.round(units / 10) * 10)
  return currency === 'USD' ? Math.round(dollars * 100) : Math.max(1, Math.round(units)) * 100 - 1
}

/** US cents for an amount in minor units. */
export function inCents(minor: number, currency: string): number {
  return Math.round((minor / 10 ** minorUnits(currency)!) * DOLLARS[currency]! * 100)
}

export function productRecord(plan: Plan, made: string): object {
  const { id, name, status, description, interval, count, dollars, trial } = plan
  const prices = Object.keys(DOLLARS).map((currency) => ({
    id: `price_${id.slice(5)}_${currency.toLowerCase()}`,
    type: 'recurring',
    amount: priceIn(currency, dollars),
    currency,
    status,
    created_at: made,
    interval,
    interval_count: count,
    trial_type: trial ? (trial.dollars > 0 ? 'paid' : 'free') : null,
    trial: trial && {
      type: trial.dollars > 0 ? 'paid' : 'free',
      duration_interval: 'day',
      duration_count: trial.days,
      price: priceIn(currency, trial.dollars),
      currency,
    },
  }))
  const shown = { platform: 'web', statement_descriptor: 'MOONRISE', entitlement: 'premium', metadata: { tier: id } }
  return { id, name, status, description, ...shown, created_at: made, updated_at: made, prices }
}

export function guideRecord(made: string): object {
  const price = { id: 'price_guide_usd', type: 'one_time', amount: 2900, currency: 'USD', status: 'active' }
  return {
    id: 'prod_guide',
    name: 'Sleep guide',
    status: 'active',
    platform: 'web',
    entitlement: 'guide',
    description: 'A book to keep.',
    metadata: { format: 'pdf' },
    created_at: made,
    updated_at: made,
    prices: [{ ...price, created_at: made }],
  }
}

/** A funnel of the demo; the language of its questions is the visitor's. */
export interface Funnel {
  id: string
  title: string
  alias: string
  version: number
  /** How many of a hundred visits are to it. */
  share: number
}

export const FUNNELS: readonly Funnel[] = [
  { id: 'fun_sleep', title: 'Sleep quiz', alias: 'sleep-quiz', version: 7, share: 55 },
  { id: 'fun_calm', title: 'Calm in ten minutes', alias: 'calm', version: 4, share: 30 },
  { id: 'fun_schlaf', title: 'Schlafprofil für Eltern', alias: 'schlafprofil', version: 2, share: 15 },
]

/** `ago` returns the date-time this many days before now. */
export function funnelRecords(ago: (days: number) => string): object[] {
  const live = FUNNELS.map(({ share: _share, ...funnel }, n) => ({
    ...funnel,
    type: 'default',
    status: 'published',
    variation_count: n === 0 ? 3 : 1,
    tags: n === 0 ? ['music', 'flagship'] : [],
    created_at: ago(760 - n),
    updated_at: ago(20 + n),
    last_published_at: ago(20 + n),
  }))
  const other = (id: string, title: string, more: object) => ({ id: `fun_${id}`, title, alias: id, ...more })
  return [
    ...live,
    other('cancel', 'Cancellation', dated('cancellation', 'published', ago, 700, 90)),
    other('spring', 'Spring offer', { ...dated('default', 'archived', ago, 600, 480), deleted_at: ago(480) }),
    other('coach', 'Coach finder', dated('default', 'draft', ago, 12, 3)),
  ]
}

function dated(type: string, status: string, ago: (days: number) => string, made: number, changed: number) {
  const published = status === 'draft' ? null : ago(changed)
  return { type, status, created_at: ago(made), updated_at: ago(changed), last_published_at: published }
}

export const EXPERIMENTS = ['exp_price', 'exp_length'] as const

export function experimentRecords(ago: (days: number) => string): object[] {
  const dates = { created_at: ago(300), updated_at: ago(30) }
  return [
    { id: 'exp_price', title: 'Price on the first screen', alias: 'price-first', enabled: true, ...dates },
    { id: 'exp_length', title: 'Twelve questions or twenty', alias: 'quiz-length', enabled: false, ...dates },
  ]
}
