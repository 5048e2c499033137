// The rate limits that operators set: `200`, `200/1000` (with its burst), `off`, or `default`.
import type { Db } from '../lib/db.ts'
import { Refusal, UsageError } from '../lib/errors.ts'
import type { Rate } from './rate.ts'

const MOST_RATE = 1_000_000
const MOST_BURST = 10_000_000
// A limit that is given without its burst takes this many seconds' worth at once.
const BURST_S = 5

/** Sets the limit of an organization's key, or of each key of a project, and answers it; null is the default. */
export async function setRateLimit(
  db: Pick<Db, 'query'>,
  owner: { organization: string } | { project: string },
  text: string,
): Promise<Rate | null> {
  const rate = readRate(text)
  const [what, id] = 'project' in owner ? ['project', owner.project] : ['organization', owner.organization]
  const rows = await db.query(`update ${what}s set rate_limit = $2, rate_limit_burst = $3 where id = $1 returning 1`, [
    id,
    rate?.rate ?? null,
    rate?.burst ?? null,
  ])
  if (rows.length === 0) throw new Refusal(`There is no ${what} "${id}".`)
  return rate
}

/** Reads a limit; null for `default`. */
export function readRate(text: string): Rate | null {
  if (text === 'default') return null
  if (text === 'off') return { rate: 0, burst: 1 }
  const [, perSecond, atOnce] = /^([0-9]{1,8})(?:\/([0-9]{1,8}))?$/.exec(text) ?? []
  const rate = Number(perSecond)
  const burst = atOnce === undefined ? rate * BURST_S : Number(atOnce)
  if (rate >= 1 && rate <= MOST_RATE && burst >= 1 && burst <= MOST_BURST) return { rate, burst }
  throw new UsageError(
    `A rate limit must be requests a second such as 200, 200/1000 with how many at once, "off" or "default", not "${text}".`,
  )
}
