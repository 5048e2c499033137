// The bodies of requests about credits, and what each does to the account.
import { ApiError } from '../../../lib/errors.ts'
import { type JsonObject, roundNumbers } from '../../../lib/json/read.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { instantFromMicros, isInRange, microsFromInstant, readInstant } from '../../../lib/time.ts'
import { clientMetadata, externalId, idempotencyKey, readMetadata, uuidIn } from '../body.ts'
import type { Account } from './account.ts'
import { type Credits, checkDecimals, formatCredits, jsonCredits, readCredits, type SentAmount } from './amount.ts'
import type { Ask, Made } from './calls.ts'
import type { Hold } from './parts.ts'
import type { Held } from './store.ts'

export const unitIn = Type.String({
  description: 'The unit: `tokens`, `minutes`, … as the operator created it.',
  minLength: 1,
  maxLength: 64,
  examples: ['tokens'],
})

export const creditsIn = (description: string) => ({
  type: ['number', 'string'],
  description: `${description}: a number or a string without exponent, with at most 12 digits before the point and the decimals of the unit. Its digits are checked as they were sent.`,
  examples: ['10'],
})

const LONGEST_HOLD_S = 86_400
const DEFAULT_HOLD_S = 3_600

const key = { idempotency_key: idempotencyKey }
const metadata = { metadata: Type.Optional(clientMetadata) }
const body = (title: string, properties: object) =>
  Type.Object({ ...properties }, { title, additionalProperties: false })
const holdId = { hold_id: uuidIn('The hold.') }

export const bodies = {
  spend: body('CreditsSpendIn', {
    external_id: externalId,
    unit: unitIn,
    amount: creditsIn('What to spend, greater than 0'),
    ...key,
    ...metadata,
  }),
  hold: body('CreditsHoldIn', {
    external_id: externalId,
    unit: unitIn,
    amount: creditsIn('What to reserve, greater than 0'),
    expires_in: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LONGEST_HOLD_S,
        default: DEFAULT_HOLD_S,
        description: 'Seconds until the hold ends unless it is captured or released.',
      }),
    ),
    ...key,
  }),
  capture: body('CreditsCaptureIn', {
    ...holdId,
    amount: Type.Optional(creditsIn('What was used, at most what is held; all of it if left out')),
    ...key,
    ...metadata,
  }),
  release: body('CreditsReleaseIn', { ...holdId, ...key }),
  grant: body('CreditsGrantIn', {
    external_id: externalId,
    unit: unitIn,
    amount: creditsIn('What to grant, greater than 0'),
    expires_at: Type.Optional({
      type: ['string', 'null'],
      format: 'date-time',
      description: 'When what is left of it expires; never if left out.',
      examples: ['2026-12-31T23:59:59Z'],
    }),
    ...key,
    ...metadata,
  }),
  adjust: body('CreditsAdjustIn', {
    external_id: externalId,
    unit: unitIn,
    amount: creditsIn('The correction, which may be negative but not below what is available'),
    reason: Type.String({ description: 'Why.', minLength: 1, maxLength: 500, examples: ['Outage of 12 March'] }),
    ...key,
    ...metadata,
  }),
}

export type Operation = keyof typeof bodies

/** The request that a body makes, of this customer and unit; a hold's are known from the hold. */
export function askOf(operation: Operation, organizationId: string, given: JsonObject, of?: Owner): Ask {
  const { external_id, unit, idempotency_key } = given as Record<string, string>
  const about = { key: idempotency_key!, metadata: readMetadata('metadata', given.metadata as JsonObject | undefined) }
  const { request, run, reason } = OPERATIONS[operation](given, about)
  return {
    organizationId,
    externalId: of?.externalId ?? external_id!,
    unit: of?.unit ?? unit!,
    key: idempotency_key!,
    request: JSON.stringify([operation, of?.unit ?? unit, ...request]),
    creates: operation === 'grant' || operation === 'adjust',
    isPersonal: about.metadata !== null || reason !== undefined,
    run(held) {
      if (held === 'none') throw insufficient({ balance: 0n, held: 0n, available: 0n })
      return run(held)
    },
  }
}

/** Whose a hold is. */
export interface Owner {
  externalId: string
  unit: string
}

interface About {
  key: string
  metadata: string | null
}

interface Request {
  /** What a repeated request must have in common with the first. */
  request: (string | number | null)[]
  reason?: string
  run(held: Held): Made
}

const OPERATIONS: Record<Operation, (given: JsonObject, about: About) => Request> = {
  spend(given, about) {
    const amount = readCredits(given.amount as SentAmount)
    return {
      request: [formatCredits(amount)],
      run(held) {
        checkDecimals(amount, held)
        const entry = held.account.spend(amount, about)
        if (!entry) throw insufficient(held.account)
        return { entryId: entry.entryId }
      },
    }
  },
  hold(given) {
    const amount = readCredits(given.amount as SentAmount)
    // `60.0` is an integer too.
    const seconds = roundNumbers(given.expires_in ?? DEFAULT_HOLD_S) as number
    return {
      request: [formatCredits(amount), seconds],
      run(held) {
        checkDecimals(amount, held)
        const expiresAt = instantFromMicros(microsFromInstant(held.account.now) + BigInt(seconds) * 1_000_000n)
        const hold = held.account.hold(amount, expiresAt)
        if (!hold) throw insufficient(held.account)
        return { holdId: hold.holdId }
      },
    }
  },
  capture(given, about) {
    const asked = given.amount === undefined ? undefined : readCredits(given.amount as SentAmount)
    const id = (given.hold_id as string).toLowerCase()
    return {
      request: [id, asked === undefined ? null : formatCredits(asked)],
      run(held) {
        if (asked !== undefined) checkDecimals(asked, held)
        const hold = openHold(held.account, id)
        const amount = asked ?? hold.amount
        if (amount > hold.amount) throw aboveHold(hold, amount)
        const entry = held.account.capture(hold, amount, about)
        if (!entry) throw insufficient(held.account)
        return { entryId: entry.entryId, holdId: id }
      },
    }
  },
  release(given) {
    const id = (given.hold_id as string).toLowerCase()
    return {
      request: [id],
      run(held) {
        held.account.release(openHold(held.account, id))
        return { holdId: id }
      },
    }
  },
  grant(given, about) {
    const amount = readCredits(given.amount as SentAmount)
    const expiresAt = given.expires_at == null ? null : readInstant(given.expires_at as string)
    return {
      request: [formatCredits(amount), expiresAt],
      run(held) {
        checkDecimals(amount, held)
        if (expiresAt !== null && (expiresAt <= held.account.now || !isInRange(microsFromInstant(expiresAt))))
          throw new ApiError(400, 'invalid_property', `expires_at must be in the future, got ${expiresAt}.`)
        const entry = held.account.grant(amount, expiresAt, 'grant', about)
        return { entryId: entry.entryId, grantId: entry.grantId }
      },
    }
  },
  adjust(given, about) {
    const amount = readCredits(given.amount as SentAmount, { signed: true })
    const reason = given.reason as string
    return {
      request: [formatCredits(amount)],
      reason,
      run(held) {
        checkDecimals(amount, held)
        const entry = held.account.adjust(amount, { ...about, reason })
        if (!entry) throw insufficient(held.account)
        return { entryId: entry.entryId }
      },
    }
  },
}

type Sums = Pick<Account, 'balance' | 'held' | 'available'>

function insufficient({ balance, held, available }: Sums): ApiError {
  const sums = { balance: jsonCredits(balance), held: jsonCredits(held), available: jsonCredits(available) }
  const sentence = `The customer has ${formatCredits(available)} available: a balance of ${formatCredits(balance)}, of which ${formatCredits(held)} is held.`
  return new ApiError(400, 'insufficient_credits', sentence, { extra: { code: 'insufficient_credits', ...sums } })
}

function openHold(account: Account, id: string): Hold {
  const hold = account.holds.find(({ holdId, status }) => holdId === id && status === 'open')
  if (!hold) throw new ApiError(400, 'hold_not_open', 'The hold was captured or released before, or has expired.')
  return hold
}

const aboveHold = (hold: Hold, amount: Credits) =>
  new ApiError(
    400,
    'invalid_credit_amount',
    `amount must be at most ${formatCredits(hold.amount)}, which is held, got ${formatCredits(amount)}.`,
  )
