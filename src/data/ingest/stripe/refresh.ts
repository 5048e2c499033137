// Refreshes objects that changed at Stripe: an event is only a hint; the object is read again and imported as a feed.
import { Refusal } from '../../../lib/errors.ts'
import type { Importing } from '../load.ts'
import { BALANCE, CARDS, type Changed, DISCOUNTS, INTENTS, ledToBy } from './changed.ts'
import type { Context } from './context.ts'
import { withoutOlder } from './since.ts'
import { NotPermitted, Unreachable } from './source.ts'
import { leaveOut, STEPS, type Step } from './steps.ts'
import { storeLines } from './store.ts'
import { countWhenDone, type Rejecting } from './tally.ts'
import { forEachServed } from './unserved.ts'

export interface Refreshed {
  /** How many objects were read. */
  count: number
  /** Those of the objects given that are not stored, with the reason: they or what they led to could not be read. */
  left: Map<Changed, unknown>
  /** One of the reasons. */
  error?: unknown
  /** Whether objects may be left that Stripe would serve alone: after an outage, or the signal. */
  isOutage: boolean
}

// So many objects in a row that Stripe does not serve are an outage. A single one may fail for its own sake.
const OUTAGE = 2

/**
 * Reads these objects again and imports them, those first that others refer to. One that cannot be read does not keep the others out.
 * After an outage, or the signal, no more are read.
 */
export async function refresh(
  app: Importing,
  context: Context,
  given: Changed[],
  signal: AbortSignal,
): Promise<Refreshed> {
  const changed: Found[] = await withoutKnownFees(context, given)
  const unread = new Set(changed.map(nameOf))
  const failures = new Failures(signal)
  let isOutage = false
  let count = 0
  for (const step of STEPS) {
    const { found, names } = await readChanged(context, step, changed, failures)
    try {
      const { objects, next, left } = await storeFound(app, context, step, found, failures, signal)
      count += objects
      for (const name of names) if (!isOneOf(left, step, name)) unread.delete(name)
      for (const one of next) unread.add(nameOf(one))
      changed.push(...next)
    } catch (error) {
      failures.add(error)
      isOutage ||= error instanceof Unreachable
    }
    if (failures.areOutage) break
  }
  for (const one of changed) {
    if (one.from === undefined || !unread.has(nameOf(one))) continue
    unread.add(one.from)
    failures.note(one.from, failures.of(nameOf(one)))
  }
  const { error, areOutage } = failures
  const left = error === undefined ? [] : given.filter((one) => unread.has(nameOf(one)))
  return {
    ...{ count, error, isOutage: isOutage || areOutage },
    left: new Map(left.map((one) => [one, failures.of(nameOf(one))])),
  }
}

/** `from` is the name of the object that led to it. */
type Found = Changed & { from?: string }

const nameOf = ({ collection, id }: Changed) => `${collection} ${id}`

/** Why objects could not be read. */
class Failures {
  /** One of them: that of a permission only if there is no other. */
  error: unknown
  readonly #signal: AbortSignal
  readonly #ofNames = new Map<string, unknown>()
  #inARow = 0
  #isEnd = false

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Throws what is no failure to read. */
  add(error: unknown): void {
    if (!(error instanceof Refusal) && !this.#signal.aborted) throw error
    const isForbidden = error instanceof NotPermitted
    this.error = isForbidden ? (this.error ?? error) : error
    this.#inARow = isForbidden ? 0 : this.#inARow + 1
    this.#isEnd ||= !isForbidden && !(error instanceof Unreachable)
  }

  /** Adds the failure of an object while Stripe serves others. */
  addOfOne(error: Unreachable, name: string): void {
    this.add(error)
    this.note(name, error)
    this.endRow()
  }

  /** Notes why the object with this name could not be read. */
  note(name: string, error: unknown): void {
    this.#ofNames.set(name, error)
  }

  of(name: string): unknown {
    return this.#ofNames.get(name) ?? this.error
  }

  endRow(): void {
    this.#inARow = 0
  }

  get areOutage(): boolean {
    return this.#isEnd || this.#inARow >= OUTAGE
  }
}

/** Imports objects of a step. Returns how many there were, what they lead to, and the names of those that are not stored. */
async function storeFound(
  app: Importing,
  context: Context,
  step: Step,
  found: object[],
  failures: Failures,
  signal: AbortSignal,
): Promise<{ objects: number; next: Found[]; left: Set<string> }> {
  const objects = (await withoutOlder(context, step, found)) as { id: string }[]
  if (objects.length === 0) return { objects: 0, next: [], left: new Set() }
  const next: Found[] = []
  const nameIn = ({ id }: { id: string }) => nameOf({ collection: step.collection, id })
  const storeSome = async (some: { id: string }[], rejecting: Rejecting) => {
    const given = { ...context, ...rejecting }
    const lines = await step.convert(given, some as never[])
    await storeLines(app, given, lines, { live: true, emitEvents: context.emitEvents === true, signal })
    const led: Found[] = []
    for (const one of some)
      led.push(...(await ledToBy(context, step, one)).map((other) => ({ ...other, from: nameIn(one) })))
    next.push(...led)
  }
  const left = await forEachServed(context.source, step, objects, (some) =>
    countWhenDone(context, (rejecting) => storeSome(some, rejecting)),
  )
  for (const { object, error } of left) failures.addOfOne(error, nameIn(object))
  return { objects: objects.length - left.length, next, left: new Set(left.map(({ object }) => nameIn(object))) }
}

/** Whether the object is, or may have led to, one of those left. */
const isOneOf = (left: Set<string>, { collection }: Step, name: string) =>
  left.has(name) || (left.size > 0 && !name.startsWith(`${collection} `))

/** An entry in the balance does not change: one whose fee is stored is not read again. */
async function withoutKnownFees({ fees }: Context, changed: Changed[]): Promise<Changed[]> {
  const isEntry = ({ collection }: Changed) => collection === BALANCE
  const unknown = new Set(await fees.unknown(changed.filter(isEntry).map(({ id }) => id)))
  return changed.filter((one) => !isEntry(one) || unknown.has(one.id))
}

// Which filter of a list finds the objects.
const FILTERS: Record<string, Record<string, string>> = {
  subscriptions: { [DISCOUNTS]: 'customer' },
  charges: { [CARDS]: 'customer', [INTENTS]: 'payment_intent' },
}

/** Reads the objects of a step. Returns them and the names of those that were read. */
async function readChanged(
  context: Context,
  step: Step,
  changed: Changed[],
  failures: Failures,
): Promise<{ found: object[]; names: string[] }> {
  const filters = FILTERS[step.name] ?? {}
  const listed = changed.filter(({ collection }) => collection in filters)
  const single = changed.filter(({ collection }) => collection === step.collection)
  const found = new Map<string, object>()
  const names: string[] = []
  const all = new Map([...listed, ...single].map((one) => [nameOf(one), one]))
  for (const [name, { collection, id }] of all) {
    if (failures.areOutage) break
    try {
      if (!found.has(id)) await readInto(found, context, step, filters[collection], id)
      names.push(name)
      failures.endRow()
    } catch (error) {
      if (step.isOptional && error instanceof NotPermitted) {
        leaveOut(step, context, error)
        return { found: [], names: [...all.keys()] }
      }
      failures.add(error)
      failures.note(name, error)
    }
  }
  return { found: [...found.values()], names }
}

/** With a filter, `id` is that of another object. */
async function readInto(
  found: Map<string, object>,
  { source }: Context,
  step: Step,
  filter: string | undefined,
  id: string,
): Promise<void> {
  if (filter !== undefined) {
    for await (const page of source.pages<{ id: string }>(step.path, { ...step.params, [filter]: id }))
      for (const object of page) found.set(object.id, object)
    return
  }
  const object = await source.one<object>(step.collection, id, step.expand.length > 0 ? { expand: step.expand } : {})
  if (object) found.set(id, object)
  else if (step.name === 'products') found.set(id, { id, object: 'product', deleted: true })
}
