// Payments for trials: what Stripe charges while a subscription is trialing, such as a fee for its first week, is no period of it.
import type { Context } from './context.ts'
import { type Line, recordId } from './convert.ts'
import type { Charge } from './payments.ts'

interface Trial {
  trial_offer: { starts_at?: unknown; ends_at?: unknown } | null
  /** When the payment that is stored as that of the trial was made, in seconds. */
  paidAt: number | undefined
}

/**
 * The lines that name the first payment of each trial. Subscriptions of the same import get it in their own line, which is in `coming`.
 * `subscriptionOf` returns the subscription of a charge.
 */
export async function trialLines(
  context: Pick<Context, 'db' | 'target'>,
  charges: readonly Charge[],
  subscriptionOf: (charge: Charge) => string | undefined,
  coming: readonly Line[],
): Promise<Line[]> {
  const paid = charges.flatMap((charge) => {
    const id = charge.status === 'succeeded' ? subscriptionOf(charge) : undefined
    return id === undefined ? [] : [{ charge, id: recordId(id) }]
  })
  const trials = await storedTrials(
    context,
    paid.map(({ id }) => id),
  )
  const lines = new Map(coming.flatMap((line) => (line.record === 'subscription' ? [[line.data.id, line]] : [])))
  for (const [id, line] of lines)
    trials.set(String(id), { trial_offer: line.data.trial_offer as Trial['trial_offer'], paidAt: undefined })
  const named: Line[] = []
  // Stripe lists the newest first.
  for (const { charge, id } of paid.toSorted((one, other) => one.charge.created - other.charge.created)) {
    const trial = trials.get(id)
    if (!trial || !isWithin(charge.created, trial)) continue
    trial.paidAt = charge.created
    const own = lines.get(id)
    if (own) own.data.trial_transaction_id = recordId(charge.id)
    else named.push({ record: 'subscription', data: { id, trial_transaction_id: recordId(charge.id) } })
  }
  return named
}

/** Whether a payment at this time is the first of the trial. */
function isWithin(seconds: number, { trial_offer, paidAt }: Trial): boolean {
  const [from, to] = [trial_offer?.starts_at, trial_offer?.ends_at].map((one) => Date.parse(String(one)) / 1000)
  return from! <= seconds && seconds < to! && !(paidAt !== undefined && paidAt <= seconds)
}

async function storedTrials(
  { db, target }: Pick<Context, 'db' | 'target'>,
  ids: string[],
): Promise<Map<string, Trial>> {
  if (ids.length === 0) return new Map()
  const rows = await db.query(
    `select s.id, s.trial_offer, extract(epoch from t.created_at) as paid_at from subscriptions s
     left join transactions t on t.project_id = s.project_id and t.id = s.trial_transaction_id
     where s.project_id = $1 and s.id = any($2) and s.trial_offer is not null`,
    [target.projectId, ids],
  )
  return new Map(
    rows.map(({ id, trial_offer, paid_at }) => [
      id!,
      { trial_offer: JSON.parse(trial_offer!), paidAt: paid_at === null ? undefined : Number(paid_at) },
    ]),
  )
}
