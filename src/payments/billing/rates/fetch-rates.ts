// Fetches exchange rates from RATES_URL every working day, in one process at a time.
import type { Logger } from 'pino'
import type { Config } from '../../../config.ts'
import { type Actor, type Audit, addEntry } from '../../../core/audit/audit.ts'
import type { Clock } from '../../../lib/clock.ts'
import { Refusal } from '../../../lib/errors.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { repeat } from '../../../lib/repeat.ts'
import { download } from './download.ts'
import { type Rate, readRates } from './rate-files.ts'
import { type OnStored, refuseFuture, storeRates } from './store-rates.ts'

interface Shared {
  db: Db
  clock: Clock
  log: Logger
  audit: Audit
  config: Pick<Config, 'ratesUrl'>
}

export interface Fetched {
  /** The rates that are new or changed. */
  rates: number
  /** The newest day of the file; null if the file has not changed. */
  last_day: string | null
}

const PAUSE_MS = 60_000
// Longer than a download and the storing of rates for many organizations.
const LEASE = '10 minutes'
// The ECB publishes at about 16:00 CET: rates are at most this much late. An unchanged file is not sent again.
const AGAIN = '4 hours'
// Seconds from a failure to the next attempt.
const WAITS_SECONDS = [300, 1800, 7200]

/** Starts to fetch, if there is a URL; returns the function that stops it. */
export function fetchRatesDaily(app: Shared, onStored?: OnStored): () => Promise<void> {
  if (app.config.ratesUrl === undefined) return async () => {}
  return repeat(app, { pauseMs: PAUSE_MS, failure: 'Exchange rates could not be fetched.' }, (signal) =>
    fetchDueRates(app, onStored, signal),
  )
}

/** Fetches if it is due and no other process does. A failure changes no rate; it is stored, logged and tried again. */
export async function fetchDueRates(app: Shared, onStored?: OnStored, signal?: AbortSignal): Promise<void> {
  const url = app.config.ratesUrl
  if (url === undefined) return
  await app.db.query(REGISTER, [url])
  const [due] = await app.db.query(CLAIM, [LEASE])
  if (!due) return
  try {
    await fetchFile(app, url, { signal, onStored })
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const wait = WAITS_SECONDS[Number(due.failures)] ?? WAITS_SECONDS.at(-1)!
    await app.db.query(FAILED, [error.message, signal?.aborted ? 0 : wait])
    app.log.warn({ host: new URL(url).host, reason: error.message }, 'Exchange rates could not be fetched.')
  }
}

/** Fetches now. Throws a `Refusal` that names the cause; no rate is changed then. */
export async function fetchRatesNow(app: Shared, actor: Actor, onStored?: OnStored): Promise<Fetched> {
  const url = app.config.ratesUrl
  if (url === undefined) throw new Refusal('RATES_URL is not set.')
  await app.db.query(REGISTER, [url])
  return fetchFile(app, url, { actor, onStored })
}

const BACKGROUND: Actor = { kind: 'tundish', id: 'rates', source: 'RATES_URL' }

interface Fetching {
  actor?: Actor
  onStored: OnStored | undefined
  signal?: AbortSignal | undefined
}

async function fetchFile(
  app: Shared,
  url: string,
  { actor = BACKGROUND, onStored, signal }: Fetching,
): Promise<Fetched> {
  const { db } = app
  const [known] = await db.query('select etag, last_modified from rates_fetch where url = $1', [url])
  const validators = { etag: known?.etag ?? null, lastModified: known?.last_modified ?? null }
  const { bytes, etag, lastModified } = await download(url, validators, signal)
  const result = bytes === undefined ? UNCHANGED : await store(app, bytes, new URL(url).host, { actor, onStored })
  await db.query(FETCHED, [url, etag, lastModified, AGAIN])
  return result
}

const UNCHANGED: Fetched = { rates: 0, last_day: null }

async function store(
  app: Shared,
  bytes: Buffer,
  name: string,
  { actor, onStored }: Required<Pick<Fetching, 'actor' | 'onStored'>>,
): Promise<Fetched> {
  const rates = readRates(bytes, name)
  const days = [...new Set(rates.map(({ day }) => day))].sort()
  await refuseImplausible(app.db, rates, days, name)
  const changed = await changedRates(app.db, rates, days[0]!)
  const result = { rates: changed.length, last_day: days.at(-1)! }
  if (changed.length === 0) return result
  await storeRates(app.db, changed, null, onStored)
  await addEntry(app, actor, {
    action: 'rates.loaded',
    target: 'all organizations',
    after: { source: name, ...result },
  })
  return result
}

/** Refuses a file without days, without rates of the US dollar, or with rates of the future. */
async function refuseImplausible(db: Db, rates: Rate[], days: string[], name: string): Promise<void> {
  const last = days.at(-1)
  if (last === undefined) throw new Refusal(`${name} has no rates.`)
  const withDollar = new Set(rates.flatMap(({ day, currencyCode }) => (currencyCode === 'USD' ? [day] : [])))
  const without = days.find((day) => !withDollar.has(day))
  if (without !== undefined) throw new Refusal(`${name} has no rate of the US dollar on ${without}.`)
  await refuseFuture(db, last, name)
}

/** The rates that are not stored yet for all organizations: the file has the same ninety days every time. */
async function changedRates(db: Db, rates: Rate[], from: string): Promise<Rate[]> {
  const codes = [...new Set(rates.map(({ currencyCode }) => currencyCode))]
  const rows = await db.query(KNOWN, [codes, from])
  const known = new Map(rows.map(({ day, currency_code, per_euro }) => [`${day} ${currency_code}`, per_euro!]))
  const plain = (text: string) => text.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')
  return rates.filter(({ day, currencyCode, perEuro }) => {
    const stored = known.get(`${day} ${currencyCode}`)
    return stored === undefined || plain(stored) !== plain(perEuro)
  })
}

const KNOWN = `
  select day::text, currency_code, per_euro::text from shared_exchange_rates
  where currency_code = any($1) and day >= $2::date`

const REGISTER = `
  insert into rates_fetch as r (url, next_attempt_at) values ($1, db_clock())
  on conflict (single) do update set url = excluded.url, next_attempt_at = excluded.next_attempt_at, etag = null,
    last_modified = null, fetched_at = null, error = null, failures = 0
  where r.url <> excluded.url`

// A time that is far ahead was set before the clock was set back; the longest pause is that of a weekend.
const CLAIM = `
  update rates_fetch set next_attempt_at = db_clock() + $1::interval
  where next_attempt_at <= db_clock() or next_attempt_at > db_clock() + interval '4 days' returning failures`

// Nothing is published at weekends.
const FETCHED = `
  update rates_fetch set etag = $2, last_modified = $3, fetched_at = db_clock(), error = null, failures = 0,
    next_attempt_at = (select at + case extract(isodow from at at time zone 'UTC') when 6 then interval '2 days'
      when 7 then interval '1 day' else interval '0' end from (select db_clock() + $4::interval as at) next)
  where url = $1`

const FAILED = `
  update rates_fetch set error = $1, failures = failures + 1, next_attempt_at = db_clock() + make_interval(secs => $2::int)`
