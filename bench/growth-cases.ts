// The requests of the growth: the same pages in projects of different sizes, each at positions all over the project.
import { Agent } from 'node:http'
import { type Call, requestText } from './client.ts'
import { idOf } from './requests.ts'
import type { Program, Rig } from './rig.ts'

export interface Grown {
  label: string
  rig: Rig
  ours: Program
  /** The subscriptions of the measured project, and the number of projects in the table. */
  size: number
  projects: number
}

// Enough positions that the same few pages of the table are not read again and again.
const PLACES = 100
const END_MS = Date.UTC(2026, 0)
const STEP_MS = 7000

type Case = (grown: Grown) => Promise<Call[]>

/** By name, the calls of a case in a project. */
export const GROWTH_CASES: Record<string, Case> = {
  'page 1 of 20': async (grown) => [call(grown, '/subscriptions?limit=20')],
  'page of 20 anywhere': (grown) => anywhere(grown, '/subscriptions?limit=20'),
  'last page of 20': async (grown) => {
    const before = subscription(grown, 21)
    return [await secondPageAfter(grown, '/subscriptions?limit=20', before)]
  },
  'page of 500 anywhere': (grown) => anywhere(grown, '/subscriptions?limit=500'),
  'active, anywhere': (grown) => anywhere(grown, '/subscriptions?limit=20&filter[status]=active'),
  'one product, anywhere': (grown) => anywhere(grown, '/subscriptions?limit=20&filter[product_id]=product_7'),
  'unpaid, changed since': (grown) =>
    later(grown, '/subscriptions?limit=1&filter[status]=unpaid&filter[updated_at.from]=2000-01-01T00:00:00Z'),
  'changed within two hours': async (grown) => places(grown).map((place) => call(grown, windowAt(grown, place))),
  'by e-mail': async (grown) =>
    places(grown).map((place) =>
      call(grown, `/subscriptions?filter[email]=person${Math.floor(place / 4) * grown.projects}@example.com`),
    ),
  'one subscription': async (grown) =>
    places(grown).map((place) => call(grown, `/subscriptions/${subscription(grown, place)}`)),
  'one profile': async (grown) =>
    places(grown).map((place) => call(grown, `/profiles/${idOf('pro', Math.floor(place / 4) * grown.projects)}`)),
  'transactions anywhere': (grown) => anywhere(grown, '/transactions?limit=20'),
  'report of 500 anywhere': async (grown) => places(grown).map((place) => reportCall(grown, place)),
}

export const projectHeaders = ({ rig }: Grown) => ({ 'Service-Secret': rig.key })

export const call = (grown: Grown, path: string): Call => ({
  url: `${grown.ours.url}/public/v1${path}`,
  headers: projectHeaders(grown),
})

/** Positions spread over the project, at every size the same fractions of it. */
function places({ size }: Grown): number[] {
  return Array.from({ length: PLACES }, (_, n) => Math.floor(((n * 0.6180339887) % 1) * size))
}

const subscription = ({ projects }: Grown, place: number) => idOf('sub', place * projects)

/** Pages after items all over the list, with our cursors. */
async function anywhere(grown: Grown, path: string): Promise<Call[]> {
  const prefix = path.startsWith('/transactions') ? 'trn' : 'sub'
  const calls: Call[] = []
  for (const place of places(grown)) {
    // Not near the oldest item, after which there is no full page.
    const id = idOf(prefix, Math.max(place, Math.min(2000, grown.size / 2)) * grown.projects)
    calls.push(await secondPageAfter(grown, path, id))
  }
  return calls
}

/** A page whose cursor has the total: the second page after the item; the first if there is only one. */
async function secondPageAfter(grown: Grown, path: string, id: string): Promise<Call> {
  const one = path.replace(/limit=\d+/, 'limit=1')
  const cursor = await cursorOf(grown, `${one}&cursor=${id}`)
  return call(grown, `${path}&cursor=${cursor ?? id}`)
}

/** The pages after the first. */
async function later(grown: Grown, path: string): Promise<Call[]> {
  const calls: Call[] = []
  let cursor = await cursorOf(grown, path)
  for (; cursor && calls.length < PLACES; cursor = await cursorOf(grown, `${path}&cursor=${cursor}`)) {
    calls.push(call(grown, `${path}&cursor=${cursor}`))
  }
  return calls.length > 0 ? calls : [call(grown, path)]
}

async function cursorOf(grown: Grown, path: string): Promise<string | undefined> {
  const { url, headers } = call(grown, path)
  const body = JSON.parse(await requestText(new Agent(), url, headers)) as { pagination: { next_cursor?: string } }
  return body.pagination.next_cursor
}

function windowAt({ size, projects }: Grown, place: number): string {
  const from = new Date(END_MS - (size - place) * projects * STEP_MS)
  const to = new Date(from.getTime() + 1000 * STEP_MS * projects)
  return `/subscriptions?limit=20&filter[updated_at.from]=${from.toISOString()}&filter[updated_at.to]=${to.toISOString()}`
}

/** The number of rows of the payment report for so many subscriptions, enough for pages of 500. */
export const reportRows = (subscriptions: number) => Math.max(subscriptions / 10, 5000)

function reportCall({ ours, rig, size, projects }: Grown, place: number): Call {
  const rows = reportRows(size * projects)
  const after = Math.floor((place / size) * (rows - 500))
  const last = new Date(END_MS - (rows - after) * 1000).toISOString()
  return {
    url: `${ours.url}/bench/v1/transaction_report`,
    headers: { 'service-secret-key': rig.organizationKey },
    body: { last_transaction_date: last, limit: 500 },
  }
}
