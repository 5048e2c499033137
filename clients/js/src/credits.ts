// Credits: how a customer's credits are granted, used and listed, and the rules of automatic top-ups. Amounts are decimal texts.
import { parseExact } from './exact.ts'
import type {
  CreditEntry,
  CreditsAdjust,
  CreditsBalance,
  CreditsCapture,
  CreditsGrant,
  CreditsHold,
  CreditsRelease,
  CreditsSpend,
  TopUpRule,
} from './records.ts'

export interface SpendOptions {
  externalId: string
  /** `tokens`, `minutes`, … as the operator created it. */
  unit: string
  /** As text: `10` or `0.25`. */
  amount: string
  /** One key for each use. Send the same one with every retry: a fresh key spends again. */
  idempotencyKey: string
  metadata?: object | undefined
  signal?: AbortSignal | undefined
}

export interface HoldOptions extends Omit<SpendOptions, 'metadata'> {
  /** Until the hold ends unless it is captured or released; an hour by default, at most a day. */
  expiresInSeconds?: number | undefined
}

export interface CaptureOptions {
  holdId: string
  /** What was used; by default all that is held. */
  amount?: string | undefined
  idempotencyKey: string
  metadata?: object | undefined
  signal?: AbortSignal | undefined
}

export interface GrantOptions extends SpendOptions {
  /** When what is left of it expires; never by default. */
  expiresAt?: string | undefined
}

export interface AdjustOptions extends SpendOptions {
  reason: string
}

export interface EntriesOptions {
  /** By default those of all customers. */
  externalId?: string | undefined
  unit?: string | undefined
  /** Only entries with a later `created_at`: that of the last one that was read before. */
  after?: string | undefined
  signal?: AbortSignal | undefined
}

export interface TopUpOptions {
  externalId: string
  unit: string
  /** The card is charged when what can be spent falls below it. */
  below: string
  /** Of the charge, in major units. */
  amount: string
  currencyCode: string
  /** How much it grants; by default what the organization’s rules grant for the amount. */
  grants?: string | undefined
  /** How long that lasts, such as `90d`. */
  expiresAfter?: string | undefined
  mostPerDay: number
  mostPerMonth: number
  signal?: AbortSignal | undefined
}

export interface Credits {
  /** Spends credits, at most once for each key. Throws a `TundishError` with the code `insufficient_credits` if there are too few. */
  spend(options: SpendOptions): Promise<CreditsSpend>
  /** Reserves credits for a use whose amount is not known yet. */
  hold(options: HoldOptions): Promise<CreditsHold>
  /** Spends what was used of a hold, and releases the rest. */
  capture(options: CaptureOptions): Promise<CreditsCapture>
  release(options: {
    holdId: string
    idempotencyKey: string
    signal?: AbortSignal | undefined
  }): Promise<CreditsRelease>
  /** Adds credits without a charge. Like `adjust`, it needs a key of the organization without scopes. */
  grant(options: GrantOptions): Promise<CreditsGrant>
  /** Corrects a balance; the amount may be negative, and takes at most what is available. */
  adjust(options: AdjustOptions): Promise<CreditsAdjust>
  /** The balances of a customer, by unit. */
  balance(externalId: string, options?: { signal?: AbortSignal | undefined }): Promise<CreditsBalance[]>
  /** The entries of the ledger, oldest first, each once. */
  entries(options?: EntriesOptions): AsyncGenerator<CreditEntry>
  /** Charges the saved card when credits run out. */
  topUps: {
    /** Sets the rule of a customer and unit, and switches it on. */
    set(options: TopUpOptions): Promise<TopUpRule>
    /** Throws a `TundishError` with the code `unknown_top_up` if there is none. */
    remove(options: { externalId: string; unit: string; signal?: AbortSignal | undefined }): Promise<void>
    list(externalId: string, options?: { signal?: AbortSignal | undefined }): Promise<TopUpRule[]>
  }
}

/** Sends a body to a path of the billing API. */
export type Post = <T>(
  path: string,
  body: object,
  retry: 'safe' | 'refused',
  signal?: AbortSignal,
  parse?: (text: string) => unknown,
) => Promise<T>

const ENTRIES = 500

export function creditsOf(post: Post): Credits {
  async function* entries({ externalId, signal, ...rest }: EntriesOptions = {}): AsyncGenerator<CreditEntry> {
    let { after } = rest
    for (;;) {
      const body = { ...rest, external_id: externalId, after, limit: ENTRIES }
      const page = await post<{ entries: CreditEntry[] }>('/credits/entries', body, 'safe', signal, parseEntries)
      yield* page.entries
      if (page.entries.length < ENTRIES) return
      after = page.entries.at(-1)!.created_at
    }
  }

  return {
    spend: ({ externalId, idempotencyKey, signal, ...rest }) =>
      post('/credits/spend', { external_id: externalId, idempotency_key: idempotencyKey, ...rest }, 'safe', signal),
    hold({ externalId, idempotencyKey, expiresInSeconds, signal, ...rest }) {
      const names = { external_id: externalId, idempotency_key: idempotencyKey, expires_in: expiresInSeconds }
      return post('/credits/hold', { ...names, ...rest }, 'safe', signal)
    },
    capture: ({ holdId, idempotencyKey, signal, ...rest }) =>
      post('/credits/capture', { hold_id: holdId, idempotency_key: idempotencyKey, ...rest }, 'safe', signal),
    release: ({ holdId, idempotencyKey, signal }) =>
      post('/credits/release', { hold_id: holdId, idempotency_key: idempotencyKey }, 'safe', signal),
    grant: ({ externalId, idempotencyKey, expiresAt, signal, ...rest }) => {
      const names = { external_id: externalId, idempotency_key: idempotencyKey, expires_at: expiresAt }
      return post('/credits/grant', { ...names, ...rest }, 'safe', signal)
    },
    adjust: ({ externalId, idempotencyKey, signal, ...rest }) =>
      post('/credits/adjust', { external_id: externalId, idempotency_key: idempotencyKey, ...rest }, 'safe', signal),
    async balance(externalId, { signal } = {}) {
      const body = { external_id: externalId }
      const { balances } = await post<{ balances: CreditsBalance[] }>('/credits/balance', body, 'safe', signal)
      return balances
    },
    entries,
    topUps: topUpsOf(post),
  }
}

function topUpsOf(post: Post): Credits['topUps'] {
  return {
    set({ externalId, currencyCode, expiresAfter, mostPerDay, mostPerMonth, signal, ...rest }) {
      const names = { external_id: externalId, currency_code: currencyCode, expires_after: expiresAfter }
      const most = { most_per_day: mostPerDay, most_per_month: mostPerMonth }
      return post('/credits/top_up/set', { ...names, ...most, ...rest }, 'safe', signal)
    },
    async remove({ externalId, unit, signal }) {
      // Removed a second time, it would be unknown.
      await post('/credits/top_up/remove', { external_id: externalId, unit }, 'refused', signal)
    },
    async list(externalId, { signal } = {}) {
      const body = { external_id: externalId }
      return (await post<{ top_ups: TopUpRule[] }>('/credits/top_up/list', body, 'safe', signal)).top_ups
    },
  }
}

/** The amounts within `metadata` stay as they are. */
function parseEntries(text: string): unknown {
  const exact = parseExact(text) as { entries: CreditEntry[] }
  const { entries } = JSON.parse(text) as { entries: CreditEntry[] }
  return { entries: exact.entries.map((entry, n) => ({ ...entry, metadata: entries[n]!.metadata })) }
}
