// The demo's whole data set as lines of an import: a small company that sells better sleep.
import { DAY_MS } from '../../lib/days.ts'
import { openRandom } from '../../lib/seeded-random.ts'
import { experimentRecords, funnelRecords, guideRecord, PLANS, productRecord } from './catalogue.ts'
import { ACCOUNTS, payment } from './payments.ts'
import { iso, type Line, makePerson } from './people.ts'
import { secondSubscription } from './second-subscriptions.ts'
import { subscriptionLines } from './subscriptions.ts'

const PEOPLE = 2000
const SEED = 20_240_229

/** Customers to try charges with, each with a card of the simulator that behaves as the name says. */
const TRY_CUSTOMERS: Readonly<Record<string, string | null>> = {
  ada: 'pm_card_visa',
  grace: 'pm_card_mastercard',
  declined: 'pm_card_chargeDeclined',
  'insufficient-funds': 'pm_card_chargeDeclinedInsufficientFunds',
  slow: 'sim_slow_2000ms',
  'charged-but-silent': 'sim_charge_then_drop',
  'silent-and-not-charged': 'sim_drop_no_charge',
  'no-card': null,
}

// The address of Ada in the README and the guides.
const ADA_EMAIL = 'ada@example.com'

const isActiveSubscription = ({ record, data }: Line) =>
  record === 'subscription' && (data as { status: string }).status === 'active'

/** Gives the person of these lines Ada's name and address. */
function nameAda(lines: Line[]): void {
  for (const { record, data } of lines) {
    if ('email' in data) Object.assign(data, { email: ADA_EMAIL })
    if (record !== 'reply') continue
    const { element } = data as { element: { id: string } }
    if (element.id === 'el_email') Object.assign(data, { value: ADA_EMAIL })
    if (element.id === 'el_name') Object.assign(data, { value: 'Ada' })
  }
}

// Of a hundred people in the experiment, so many get the second variant: those who paid, and the others.
const VARIANTS: Readonly<Record<string, { paid: number; others: number }>> = {
  exp_length: { paid: 62, others: 41 },
  exp_price: { paid: 50, others: 50 },
}

/** Gives the sessions of a person a variant. The second one of the one experiment sells better, and of the other does not. */
function giveVariants(lines: Line[], n: number): void {
  const isPaid = lines.some(({ record }) => record === 'transaction')
  for (const { record, data } of lines) {
    const { experiment_id } = data as { experiment_id?: string | null }
    const shares = record === 'session' ? VARIANTS[experiment_id ?? ''] : undefined
    // Spread evenly over all people, with no random number: the other records stay the same.
    if (shares) Object.assign(data, { variant: (n * 37) % 100 < (isPaid ? shares.paid : shares.others) ? 'b' : 'a' })
  }
}

/** The records of two years up to `now`. The random numbers are the same at every start. */
export function* demoRecords(now: number): Iterable<Line> {
  const ago = (days: number) => iso(now - days * DAY_MS)
  const random = openRandom(SEED)
  for (const data of funnelRecords(ago)) yield { record: 'funnel', data }
  for (const data of experimentRecords(ago)) yield { record: 'experiment', data }
  for (const plan of PLANS) yield { record: 'product', data: productRecord(plan, ago(740)) }
  yield { record: 'product', data: guideRecord(ago(400)) }
  for (const [region, psp_merchant_id] of Object.entries(ACCOUNTS))
    yield { record: 'merchant_account', data: { psp: 'simulator', psp_merchant_id, region, currencies: [] } }
  let ada: string | undefined
  for (let n = 1; n <= PEOPLE; n += 1) {
    const person = makePerson(random, n, now)
    const lines = [...person.lines, ...subscriptionLines(random, person, n, now)]
    lines.push(...secondSubscription(lines, n, now))
    giveVariants(lines, n)
    if (ada === undefined && lines.some(isActiveSubscription)) {
      ada = person.id
      nameAda(lines)
    }
    yield* lines
  }
  for (const [n, [external_id, token]] of Object.entries(TRY_CUSTOMERS).entries()) {
    const who = external_id === 'ada' ? { email: ADA_EMAIL, profile_id: ada } : {}
    yield { record: 'customer', data: { external_id, ...who } }
    yield payment(random, { external_id, ms: now - (40 - n) * DAY_MS, price: 1999, currency: 'USD', token })
  }
}
