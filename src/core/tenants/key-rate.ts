// The request rate of a key as it is stored and written.

/** Requests per second, and the burst on top of that. A rate of 0 means no limit. */
export interface KeyRate {
  rate: number
  burst: number
}

/** The rate in the columns `rate_limit` and `rate_limit_burst`; null if none is set. */
export const rateOf = (rate: string | null | undefined, burst: string | null | undefined): KeyRate | null =>
  rate == null ? null : { rate: Number(rate), burst: Number(burst) }

/** As operators write it: `20/100`. */
export const rateText = ({ rate, burst }: KeyRate): string => `${rate}/${burst}`
