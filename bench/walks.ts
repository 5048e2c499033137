// Cases that read a whole list page by page, as a warehouse does: rows a second.
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { requestText, send } from './client.ts'
import { alternate, type Result, type Run } from './measure.ts'
import type { Options } from './options.ts'
import { type Call, record } from './record.ts'
import { findMiddle, type Servers, withCpu } from './requests.ts'
import { limit, type Tools } from './tools.ts'

const PAGE = 500

/** Every transaction, newest first, with limit 500. The limit is pgbench reading such a page in the middle, alone. */
export async function walkTransactions({ rig, ours, plain }: Servers, tools: Tools, options: Options): Promise<Result> {
  const headers = { 'Service-Secret': rig.key }
  const path = `/transactions?limit=${PAGE}`
  const middle = await findMiddle(ours.url, headers, path, options.size)
  const reference = await pageLimit(rig, tools, { path: `/public/v1${path}${middle.ours}`, headers })
  const walk =
    (base: string, given: Record<string, string>): Run =>
    (seconds) =>
      pages(seconds, options.quick, async (agent, cursor) => {
        const { times, end } = await skim(
          agent,
          `${base}${path}${cursor ? `&cursor=${cursor}` : ''}`,
          given,
          '"id":"trn_',
        )
        return { rows: times, next: /"next_cursor":"([^"]+)"/.exec(end)?.[1] }
      })
  return alternate(
    'walk-transactions',
    'rows',
    {
      ours: withCpu(rig, ours, walk(`${ours.url}/public/v1`, headers)),
      ...reference,
      plain: withCpu(rig, plain, walk(plain.url, {})),
    },
    options,
  )
}

/** Every row of the payment report, oldest first, with limit 500. */
export async function walkReport({ rig, ours, plain }: Servers, tools: Tools, options: Options): Promise<Result> {
  const headers = { 'service-secret-key': rig.organizationKey, 'content-type': 'application/json' }
  const path = '/bench/v1/transaction_report'
  const from = (last_transaction_date: string) => ({ last_transaction_date, limit: PAGE })
  const middle = from(new Date(Date.UTC(2026, 0) - (options.size / 2) * 1000).toISOString())
  const both = await Promise.all([ours, plain].map(({ url }) => requestText(new Agent(), url + path, headers, middle)))
  assert.deepEqual(JSON.parse(both[1]!), JSON.parse(both[0]!), 'The plain server does not report what ours does.')
  const reference = await pageLimit(rig, tools, { method: 'POST', path, headers, body: middle })
  const walk =
    (url: string): Run =>
    (seconds) =>
      pages(seconds, options.quick, async (agent, last = '2000-01-01T00:00:00Z') => {
        const { times, end } = await skim(agent, url + path, headers, STAMP, from(last))
        const at = end.lastIndexOf(STAMP) + STAMP.length
        return { rows: times, next: times < PAGE ? undefined : end.slice(at, at + INSTANT) }
      })
  return alternate(
    'walk-report',
    'rows',
    { ours: withCpu(rig, ours, walk(ours.url)), ...reference, plain: withCpu(rig, plain, walk(plain.url)) },
    options,
  )
}

/** pgbench with the statements of one page on one connection; their cost does not depend on the position. */
async function pageLimit(rig: Servers['rig'], { pgbench }: Tools, call: Call): Promise<{ limit?: Run }> {
  if (!pgbench) return {}
  const { statements } = await record(rig, call)
  return {
    limit: async (seconds) => {
      const { perSecond } = await limit(pgbench, rig.databaseUrl, statements, seconds, 1)
      return { perSecond: perSecond * PAGE }
    },
  }
}

/** Reads all pages to the end; only for these seconds when warming up or with `quick`. */
async function pages(
  seconds: number,
  quick: boolean,
  read: (agent: Agent, place: string | undefined) => Promise<{ rows: number; next: string | undefined }>,
) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const begunMs = performance.now()
  const ended = () => (quick || seconds <= 1) && performance.now() - begunMs > seconds * 1000
  let rows = 0
  let place: string | undefined
  do {
    const page = await read(agent, place)
    rows += page.rows
    place = page.next
  } while (place !== undefined && !ended())
  agent.destroy()
  return { perSecond: (rows * 1000) / (performance.now() - begunMs) }
}

const STAMP = '"trx_created_at":"'
const INSTANT = '2026-01-31T23:59:59.123456Z'.length
// The last row of a report and the text after it are shorter than this.
const END_BYTES = 8192

/**
 * Sends a request and counts the occurrences of a text in the response while it arrives; `end` is its last few thousand bytes.
 * The client runs on the measured machine, so it stores and copies nothing else.
 */
async function skim(agent: Agent, url: string, headers: Record<string, string>, text: string, body?: object) {
  const response = await send(agent, url, headers, body)
  let times = 0
  /** The last received bytes: the text may begin in one chunk and end in the next. */
  let end: Buffer = Buffer.alloc(0)
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const seam = Buffer.concat([
      end.subarray(Math.max(0, end.length - text.length + 1)),
      chunk.subarray(0, text.length - 1),
    ])
    times += count(seam, text) + count(chunk, text)
    end = chunk.length >= END_BYTES ? chunk : Buffer.concat([end, chunk])
    end = end.subarray(Math.max(0, end.length - END_BYTES))
  }
  if (response.statusCode !== 200) throw new Error(`${url} has the status ${response.statusCode}: ${end}`)
  return { times, end: end.toString('latin1') }
}

/** The number of occurrences of a text in these bytes. */
function count(bytes: Buffer, text: string): number {
  let times = 0
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) times += 1
  return times
}
