// Compares our orders and refunds with what the providers did since an instant, both ways, and settles what we forgot.
import { minorUnits } from '../../lib/money.ts'
import { type Movement, type Provider, ProviderTrouble } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import * as charges from '../charge/orders.ts'
import type { BillingContext } from '../context.ts'
import * as refunds from '../refund/refunds.ts'
import { lookIntoCharge, lookIntoRefund, orUnsettled } from './ask-provider.ts'
import { leaseMs } from './lease.ts'

export type Difference = 'mismatch' | 'missing_here' | 'missing_there' | 'duplicate'

export interface Finding {
  difference: Difference
  psp: string
  type: Movement['type']
  /** Our id of the order or refund, as the provider has it. */
  reference: string
  what: string
}

export interface Reconciliation {
  match: number
  /** In progress here until now, settled by this. */
  settled: number
  /** In the hands of a process that is making or settling it at this moment. */
  in_progress: number
  findings: Finding[]
}

/** What a charge and a refund have in common here. */
interface Ours {
  id: string
  key: string
  status: string
  amount: string
  currency_code: string
}

type Kind = ReturnType<typeof kinds>['charge']

// How many movements are looked up at once.
const BATCH = 500

/** Throws `ProviderTrouble` when a provider cannot tell. */
export async function reconcile(context: BillingContext, since: string): Promise<Reconciliation> {
  const result: Reconciliation = { match: 0, settled: 0, in_progress: 0, findings: [] }
  for (const { provider } of await context.providers.all()) {
    const seen = new Set<string>()
    for await (const batch of batches(provider.list(since))) {
      for (const kind of Object.values(kinds(context, provider))) {
        await compareBatch(
          provider,
          kind,
          batch.filter((one) => one.type === kind.type),
          seen,
          result,
        )
      }
    }
    for (const kind of Object.values(kinds(context, provider)))
      await findMissingThere(provider, kind, since, seen, result)
  }
  return result
}

/** Movements there against rows here. */
async function compareBatch(
  { name: psp }: Provider,
  kind: Kind,
  movements: Movement[],
  seen: Set<string>,
  result: Reconciliation,
): Promise<void> {
  const keys = movements.flatMap(({ key }) => key ?? [])
  const rows = new Map((await kind.find(keys)).map((row) => [row.key, row]))
  for (const movement of movements) {
    const { type, key, reference } = movement
    // Not made by us.
    if (key === null || reference === null) continue
    const report = (difference: Difference, what: string) =>
      result.findings.push({ difference, psp, type, reference, what })
    const place = `${type} ${key}`
    if (seen.has(place)) report('duplicate', 'moved twice under one key')
    else if (!rows.has(key)) report('missing_here', `${worth(movement)} that nothing here stands for`)
    else await compareOne(kind, rows.get(key)!, movement, report, result)
    seen.add(place)
  }
}

async function compareOne(
  kind: Kind,
  row: Ours,
  movement: Movement,
  report: (difference: Difference, what: string) => void,
  result: Reconciliation,
): Promise<void> {
  const isForgotten = row.status === 'processing'
  const now = isForgotten ? await kind.settle(row) : row
  if (now === 'unsettled') report('mismatch', `${worth(movement)} there, which cannot be settled here`)
  else if (!now) result.in_progress++
  else if (now.status === 'processing')
    report('mismatch', `${worth(movement)} there, of which nothing certain can be heard`)
  else if (now.status !== 'succeeded') report('mismatch', `${worth(movement)} there, ${now.status} here`)
  else if (!isSameMoney(now, movement))
    report('mismatch', `${worth(movement)} there, ${now.amount} ${now.currency_code} here`)
  else if (isForgotten) result.settled++
  else result.match++
}

/** Rows here that no movement stood for: the provider is asked about each, for it may have moved earlier. */
async function findMissingThere(
  { name: psp }: Provider,
  kind: Kind,
  since: string,
  seen: Set<string>,
  result: Reconciliation,
): Promise<void> {
  for (const row of await kind.succeededSince(since)) {
    if (seen.has(`${kind.type} ${row.key}`)) continue
    const told = await kind.lookUp(row)
    if (told.outcome === 'unknown') throw new ProviderTrouble(told.why)
    if (told.outcome === 'succeeded') result.match++
    else {
      const what = `succeeded here with ${row.amount} ${row.currency_code}, ${told.outcome.replace('_', ' ')} there`
      result.findings.push({ difference: 'missing_there', psp, type: kind.type, reference: row.id, what })
    }
  }
}

/** The verbs of both kinds of movement, by one set of names. */
function kinds(context: BillingContext, provider: Provider) {
  const { db, providerTimeoutMs } = context
  const lease = leaseMs(providerTimeoutMs, 2)
  const order = (row: charges.Order) => ({ ...row, id: row.order_id, key: row.provider_key })
  const refund = (row: refunds.Refund) => ({ ...row, id: row.refund_id, key: row.provider_key })
  return {
    charge: {
      type: 'charge' as Movement['type'],
      find: async (keys: string[]): Promise<Ours[]> => (await charges.findByProviderKeys(db.query, keys)).map(order),
      succeededSince: async (since: string): Promise<Ours[]> =>
        (await charges.findSucceededSince(db.query, provider.name, since)).map(order),
      lookUp: (row: Ours) => provider.lookUp(charges.reference(row as Ours & charges.Order)),
      async settle(row: Ours): Promise<Ours | 'unsettled' | undefined> {
        const taken = await charges.take(db, row as Ours & charges.Order, lease)
        return taken && orUnsettled(context, taken, async () => order(await lookIntoCharge(context, taken)))
      },
    },
    refund: {
      type: 'refund' as Movement['type'],
      find: async (keys: string[]): Promise<Ours[]> => (await refunds.findByProviderKeys(db.query, keys)).map(refund),
      succeededSince: async (since: string): Promise<Ours[]> =>
        (await refunds.findSucceededSince(db.query, provider.name, since)).map(refund),
      lookUp: (row: Ours) => provider.lookUpRefund(refunds.reference(row as Ours & refunds.Refund)),
      async settle(row: Ours): Promise<Ours | 'unsettled' | undefined> {
        const taken = await refunds.take(db, row as Ours & refunds.Refund, lease)
        return taken && orUnsettled(context, taken, async () => refund(await lookIntoRefund(context, taken)))
      },
    },
  }
}

function isSameMoney(row: Ours, { amountMinor, currencyCode }: Movement): boolean {
  if (row.currency_code !== currencyCode || minorUnits(currencyCode) === undefined) return false
  return minorFromDatabase(row.amount, currencyCode) === amountMinor
}

const worth = ({ amountMinor, currencyCode }: Movement) => `${amountMinor} minor units of ${currencyCode}`

async function* batches(movements: AsyncIterable<Movement>): AsyncGenerator<Movement[]> {
  let batch: Movement[] = []
  for await (const movement of movements) {
    batch.push(movement)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  yield batch
}
