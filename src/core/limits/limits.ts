// The limits of a key: its request rate and its concurrent requests; and the limit of requests with invalid keys.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import { ApiError } from '../../lib/errors.ts'
import { callerOf } from '../../lib/http/client-address.ts'
import type { KeyHolder } from '../tenants/tenants.ts'
import { openRateLimiter, type Rate, type Shared } from './rate.ts'
import { createUnauthorizedThrottle } from './unauthorized-throttle.ts'

export interface Limits {
  /** Admits a request with a valid key, or throws a 429. Sets the RateLimit headers. */
  admit(reply: FastifyReply, holder: KeyHolder): void
  /** Waits until a request without a valid key may get its 401; throws a 429 when the wait would be too long. */
  delayUnauthorized(request: FastifyRequest): Promise<void>
  close(): Promise<void>
}

/** The state of a key in this process. */
interface Use {
  underWay: number
  /** The `RateLimit-Policy` header of this rate, formatted once. */
  rate: Rate
  policy: string
}

export function openLimits(app: Shared & { config: Config }): Limits {
  const { config, clock } = app
  const limiter = openRateLimiter(app)
  const throttle = createUnauthorizedThrottle(clock, config.unauthorizedRate)
  const uses = new Map<string, Use>()

  function useOf(holder: KeyHolder): Use {
    let use = uses.get(holder.key_id)
    const { rate, burst } = lower(holder.rate ?? config.rateLimit, holder.ownRate)
    if (!use || use.rate.rate !== rate || use.rate.burst !== burst) {
      use = { underWay: use?.underWay ?? 0, rate: { rate, burst }, policy: policyOf({ rate, burst }) }
      uses.set(holder.key_id, use)
    }
    return use
  }

  function begin({ key_id }: KeyHolder, reply: FastifyReply): void {
    uses.get(key_id)!.underWay += 1
    // Emitted however the request ends: with a response, or aborted by the caller.
    reply.raw.once('close', () => {
      const use = uses.get(key_id)!
      use.underWay -= 1
      if (use.underWay === 0) uses.delete(key_id)
    })
  }

  return {
    admit(reply, holder) {
      const use = useOf(holder)
      begin(holder, reply)
      if (use.underWay > config.maxConcurrentPerKey) {
        throw tooMany(`This key has ${config.maxConcurrentPerKey} concurrent requests already`, 1000)
      }
      if (use.rate.rate === 0) return
      const { admitted, remaining, waitMs } = limiter.take(holder.key_id, use.rate)
      reply.header('ratelimit-policy', use.policy)
      reply.header('ratelimit', `"key";r=${remaining};t=${seconds(waitMs)}`)
      const requests = use.rate.rate === 1 ? 'request' : 'requests'
      if (!admitted) throw tooMany(`This key may send ${use.rate.rate} ${requests} a second`, waitMs)
    },
    async delayUnauthorized(request) {
      const waitMs = await throttle.delay(callerOf(request.raw, config.trustedProxies))
      if (waitMs !== undefined) throw tooMany('Too many requests without a valid key came from this address', waitMs)
    },
    close: () => limiter.close(),
  }
}

/** The rate of a key whose tenant's keys have this rate: its own may be lower. */
function lower(shared: Rate, own: Rate | null): Rate {
  if (own === null) return shared
  if (shared.rate === 0) return own
  return { rate: Math.min(shared.rate, own.rate), burst: Math.min(shared.burst, own.burst) }
}

/** draft-ietf-httpapi-ratelimit-headers-11: the burst, in the time in which the rate fills it again. */
function policyOf({ rate, burst }: Rate): string {
  return rate === 0 ? '' : `"key";q=${burst};w=${Math.ceil(burst / rate)}`
}

function tooMany(why: string, waitMs: number): ApiError {
  const wait = seconds(waitMs)
  const headers = { 'retry-after': String(wait) }
  return new ApiError(429, 'rate_limited', `${why}: try again in ${wait} ${wait === 1 ? 'second' : 'seconds'}.`, {
    headers,
  })
}

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000))
