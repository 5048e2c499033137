// The rate limits that operators set: `200`, `200/1000` (with its burst), `off`, or `default`.

import { UsageError } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { shorten } from '../../lib/text.ts'
import { rateOf, rateText } from '../tenants/key-rate.ts'
import type { Rate } from './rate.ts'

const MAX_RATE = 1_000_000
const MAX_BURST = 10_000_000
// The default burst: the requests of this many seconds.
const BURST_S = 5

/** Sets the limit of an organization's key, or of each key of an existing project; returns the old and the new one. */
export async function setRateLimit(
  query: Query,
  owner: 'organization' | 'project',
  id: string,
  text: string,
): Promise<{ before: string; after: string }> {
  const after = readRate(text)
  const table = `${owner}s`
  const [old] = await query(`select rate_limit, rate_limit_burst from ${table} where id = $1 for no key update`, [id])
  await query(`update ${table} set rate_limit = $2, rate_limit_burst = $3 where id = $1`, [
    id,
    after?.rate ?? null,
    after?.burst ?? null,
  ])
  return { before: writeRate(rateOf(old!.rate_limit, old!.rate_limit_burst)), after: writeRate(after) }
}

/** Throws a `UsageError` for a text that is no limit. */
export const checkRateLimit = (text: string): void => void readRate(text)

/** Reads the limit of a key, which is a rate and nothing else. Throws a `UsageError`. */
export function readKeyRate(text: string): Rate {
  const rate = readNumbers(text)
  if (rate) return rate
  throw new UsageError(
    `rate_limit must be requests per second such as 20, with a burst such as 20/100, got "${shorten(text, 40)}".`,
  )
}

/** Reads a limit; null for `default`. */
function readRate(text: string): Rate | null {
  if (text === 'default') return null
  if (text === 'off') return { rate: 0, burst: 1 }
  const rate = readNumbers(text)
  if (rate) return rate
  throw new UsageError(
    `A rate limit must be requests per second such as 200, with a burst such as 200/1000, "off" or "default", got "${shorten(text, 40)}".`,
  )
}

function readNumbers(text: string): Rate | undefined {
  const [, perSecond, atOnce] = /^([0-9]{1,8})(?:\/([0-9]{1,8}))?$/.exec(text) ?? []
  const rate = Number(perSecond)
  const burst = atOnce === undefined ? rate * BURST_S : Number(atOnce)
  if (rate >= 1 && rate <= MAX_RATE && burst >= 1 && burst <= MAX_BURST) return { rate, burst }
  return undefined
}

function writeRate(rate: Rate | null): string {
  if (rate === null) return 'default'
  return rate.rate === 0 ? 'off' : rateText(rate)
}
