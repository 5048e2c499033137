// Sums the objects read at Stripe and the records stored here, by kind, month and currency, and finds differences.
import { hideSecrets } from '../../../lib/hide-secrets.ts'

/** Number and sum of the rows with one key. Sums are in minor units of ISO 4217, as decimal text. */
interface Sums {
  count: number
  minor: string
}

export interface Figure {
  kind: string
  /** `2026-10`, or '' for records without a month. */
  month: string
  /** In capitals; '' for records without an amount. */
  currency: string
  stripe: Sums
  here: Sums
}

/** As it is kept in the database. */
export interface Tally {
  figures: Record<string, { stripe: Sums; here: Sums }>
  /** How many objects could not be imported. */
  rejected: number
  /** The first hundred objects that could not be imported, or not whole, with the reason. */
  rejects: string[]
  /** How many texts were cut or left out because they are too long. */
  shortened?: number
  /** Objects that were left out because Tundish itself made the charge. */
  own: number
  /** Charges of these that have no order here, in no organization, and that no operator has accepted. */
  lost?: number
  /** Lines about erased people, stored without personal data. */
  erased: number
  /** Objects read. */
  read: number
}

const MAX_REJECTS = 100
const NOTHING: Sums = { count: 0, minor: '0' }

export const emptyTally = (): Tally => ({ figures: {}, rejected: 0, rejects: [], own: 0, erased: 0, read: 0 })

/** Adds to one side of a figure. */
export function add(
  tally: Tally,
  side: 'stripe' | 'here',
  { kind, month = '', currency = '' }: { kind: string; month?: string; currency?: string },
  count: number,
  minor = 0n,
): void {
  const key = [kind, month, currency].join('|')
  const figure = tally.figures[key] ?? { stripe: { ...NOTHING }, here: { ...NOTHING } }
  tally.figures[key] = figure
  const sums = figure[side]
  sums.count += count
  sums.minor = String(BigInt(sums.minor) + minor)
}

/** Where rejected objects are counted and named. */
export interface Rejecting {
  tally: Tally
  /** Called for each, because the tally names only the first hundred. */
  onRejected?: ((line: string) => void) | undefined
}

/** The same without the sums, for imports that keep theirs elsewhere. */
export type Naming = Pick<Rejecting, 'onRejected'> & { tally: Pick<Tally, 'rejected' | 'rejects' | 'shortened'> }

/** Counts and names an object that cannot be imported; one that is found again by another object only once. */
export function reject({ tally, onRejected }: Naming, id: string, reason: string): void {
  const line = hideSecrets(`${id} ${reason}`)
  if (tally.rejects.includes(line)) return
  tally.rejected += 1
  name(tally, line)
  onRejected?.(line)
}

/** Counts and names what `work` rejects, but only once it has succeeded: after a failure it may be repeated. */
export async function countWhenDone<T>(
  { tally, onRejected }: Rejecting,
  work: (rejecting: Rejecting) => Promise<T>,
): Promise<T> {
  const counted = structuredClone(tally)
  const lines: string[] = []
  const result = await work({ tally: counted, onRejected: (line) => lines.push(line) })
  Object.assign(tally, counted)
  for (const line of lines) onRejected?.(line)
  return result
}

/** Counts and names a text that was too long. */
export function shortened(naming: Naming, id: string, reason: string): void {
  naming.tally.shortened = (naming.tally.shortened ?? 0) + 1
  changed(naming, id, reason)
}

/** Names an object that is stored with another value. */
export function changed({ tally, onRejected }: Naming, id: string, reason: string): void {
  const line = hideSecrets(`${id} ${reason}`)
  name(tally, line)
  onRejected?.(line)
}

function name({ rejects }: Pick<Tally, 'rejects'>, line: string): void {
  if (rejects.length < MAX_REJECTS) rejects.push(line)
}

/** The figures in the order of kind, month and currency. */
export function figuresOf({ figures }: Tally): Figure[] {
  return Object.entries(figures)
    .map(([key, sides]) => {
      const [kind, month, currency] = key.split('|') as [string, string, string]
      return { kind, month, currency, ...sides }
    })
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

export function isDifferent({ stripe, here }: Figure): boolean {
  return stripe.count !== here.count || stripe.minor !== here.minor
}

const keyOf = ({ kind, month, currency }: Figure) => `${kind} ${month} ${currency}`
