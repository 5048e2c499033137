// Puts together what is stored already: reads what an account at Stripe names, and proposes or makes the merges and links of an import.
import type { Stripe } from 'stripe'
import type { Query } from '../../../lib/pg/types.ts'
import type { Importing } from '../load.ts'
import type { WaitingLink } from '../waiting.ts'
import { type Lookup, lookupInMemory, storedIds } from './context.ts'
import { idOf, type Line, recordId, type Target } from './convert.ts'
import { type AnyCustomer, externalIdOf } from './customers.ts'
import { type Names, namesIn, nearest } from './names.ts'
import {
  linkNames,
  linkPeople,
  linksIn,
  peopleOf,
  profilesOf,
  type Recognized,
  unlinked,
  waitingFor,
} from './people.ts'
import type { StripeSource } from './source.ts'

export interface Proposals {
  /** The number of objects that were read at Stripe. */
  read: number
  /** Profiles to merge, and how their person was recognized. */
  merges: Pick<Recognized, 'from' | 'into' | 'by'>[]
  /** What subscriptions and transactions are to be linked to. */
  links: WaitingLink[]
  /** Names of records that are not stored; with an application they wait for these. */
  unknown: WaitingLink[]
}

/**
 * Reads the subscriptions, charges and customers of an account, and finds the stored records that they put together. With `apply`
 * these are merged and linked, and only then.
 */
export async function linkAccount(
  app: Importing,
  source: StripeSource,
  target: Target,
  { apply }: { apply: boolean },
): Promise<Proposals> {
  const proposals: Proposals = { read: 0, merges: [], links: [], unknown: [] }
  const checkouts = lookupInMemory<Names>()
  for (const { path, params, lines } of READINGS)
    for await (const objects of source.pages<{ id: string }>(path, params)) {
      const found = await lines(objects as never[], target, checkouts)
      const stored = await ofStored(app, target, found)
      await propose(app.db.query, target, stored, proposals)
      proposals.read += objects.length
      if (!apply) continue
      await linkPeople(app, target, stored)
      await linkNames(app, target, stored)
    }
  return proposals
}

interface Reading {
  path: string
  params: { status?: string; expand?: string[] }
  lines(objects: never[], target: Target, checkouts: Lookup<Names>): Promise<Line[]>
}

// In the order of an import, because what is nearer to the money decides.
const READINGS: Reading[] = [
  {
    path: '/v1/checkout/sessions',
    params: {},
    async lines(sessions: Stripe.Checkout.Session[], { metadata }, checkouts) {
      const named = sessions.flatMap((one) => {
        const bought = idOf(one.subscription) ?? idOf(one.payment_intent)
        return bought === undefined ? [] : [[bought, namesIn(metadata, one)] as const]
      })
      await checkouts.add(new Map(named))
      return []
    },
  },
  {
    path: '/v1/subscriptions',
    params: { status: 'all', expand: ['data.customer'] },
    async lines(subscriptions: Stripe.Subscription[], { metadata }, checkouts) {
      const named = await checkouts.find(subscriptions.map(({ id }) => id))
      return subscriptions.map((one) =>
        line('subscription', one.id, one.customer, [
          namesIn(metadata, one),
          named.get(one.id),
          namesIn(metadata, one.customer),
        ]),
      )
    },
  },
  {
    path: '/v1/charges',
    params: { expand: ['data.customer', 'data.payment_intent'] },
    async lines(charges: Stripe.Charge[], { metadata }, checkouts) {
      const named = await checkouts.find(charges.flatMap(({ payment_intent }) => idOf(payment_intent) ?? []))
      return charges.map((one) =>
        line('transaction', one.id, one.customer, [
          named.get(idOf(one.payment_intent) ?? ''),
          namesIn(metadata, one.payment_intent, one, one.customer),
        ]),
      )
    },
  },
  {
    path: '/v1/customers',
    params: {},
    async lines(customers: Stripe.Customer[], target) {
      return customers.map((one) => {
        const external_id = externalIdOf(one, target)
        const data = { external_id, email: one.email, profile_id: recordId(one.id) }
        return { record: 'customer', data, names: namesIn(target.metadata, one) }
      })
    },
  },
]

function line(record: string, id: string, customer: string | AnyCustomer | null, names: (Names | undefined)[]): Line {
  const of = idOf(customer)
  return {
    record,
    data: { id: recordId(id), profile_id: of === undefined ? `guest_${id}` : recordId(of) },
    names: nearest(...names),
  }
}

/** The lines of people who are stored. */
async function ofStored({ db }: Importing, { projectId }: Target, lines: Line[]): Promise<Line[]> {
  const ids = [...new Set(lines.map(({ data }) => String(data.profile_id)))]
  const stored = await storedIds(db, 'profiles', projectId, ids)
  return lines.filter(({ data }) => stored.has(String(data.profile_id)))
}

/** Adds what an import of these lines would merge and link. A person who was found by a nearer object keeps that. */
async function propose(query: Query, target: Target, lines: Line[], { merges, links, unknown }: Proposals) {
  const known = new Set(merges.map(({ from }) => from))
  const people = peopleOf(lines).filter(({ id }) => !known.has(id))
  const { projectId } = target
  if (people.length > 0) {
    const found = await profilesOf(query, target, people)
    for (const { from, into, by } of found) merges.push({ from, into, by })
    for (const one of await waitingFor(query, projectId, people, found)) {
      // Several objects of a customer may name it.
      const isListed = unknown.some(
        ({ record, id, named }) => record === one.record && id === one.id && named === one.named,
      )
      if (!isListed && !(await isStored(query, projectId, one))) unknown.push(one)
    }
  }
  for (const one of await unlinked(query, projectId, linksIn(lines)))
    ((await isStored(query, projectId, one)) ? links : unknown).push(one)
}

const TABLES: Record<WaitingLink['field'], string> = {
  profile_id: 'profiles',
  session_id: 'sessions',
  funnel_id: 'funnels',
  experiment_id: 'experiments',
}

async function isStored(query: Query, projectId: string, { field, named }: WaitingLink): Promise<boolean> {
  const rows = await query(`select 1 from ${TABLES[field]} where project_id = $1 and id = $2`, [projectId, named])
  return rows.length > 0
}
