// The payment method tokens of the dialect: what each does when it is charged. Of `tok_visa~7` the part after `~` is only a name.
import { PrimerError } from './errors.ts'

export interface Decline {
  type: string
  code?: string
  declineType?: 'SOFT_DECLINE' | 'HARD_DECLINE'
  message: string
}

export interface Behaviour {
  /** The attempts at the processors, in their order; null is an approval. */
  attempts: (Decline | null)[]
  /** The state of an approved payment. */
  approved: 'SETTLED' | 'AUTHORIZED' | 'PENDING' | 'SETTLING' | 'PARTIALLY_SETTLED'
  /** After how many milliseconds a payment that is not decided is settled; without it never. */
  settlesAfterMs?: number
  /** Whether the customer has to authenticate. */
  needsAction?: boolean
  /** What happens to a refund. */
  refund?: 'pending' | 'fails' | 'fails_later'
  fault?: { on: 'charge' | 'refund'; kind: string; ms: number; once: boolean }
}

const issuer = (code: string, declineType: Decline['declineType'], message: string): Decline => ({
  type: 'ISSUER_DECLINED',
  code,
  declineType: declineType!,
  message,
})

const DECLINES: Record<string, Decline> = {
  declined: issuer('DECLINED', 'SOFT_DECLINE', 'The card was declined.'),
  insufficient_funds: issuer('INSUFFICIENT_FUNDS', 'SOFT_DECLINE', 'The card has insufficient funds.'),
  expired_card: issuer('EXPIRED_CARD', 'HARD_DECLINE', 'The card has expired.'),
  lost_card: issuer('LOST_OR_STOLEN_CARD', 'HARD_DECLINE', 'The card was reported lost or stolen.'),
  authentication: issuer('AUTHENTICATION_REQUIRED', 'SOFT_DECLINE', 'The issuer asks for authentication.'),
  rejected: { type: 'GATEWAY_REJECTED', message: 'The processor rejected the request.' },
}
const timedOut: Decline = { type: 'GATEWAY_TIMEOUT', message: 'The processor did not respond in time.' }

const approved: Behaviour = { attempts: [null], approved: 'SETTLED' }

/** The behaviour of a token. Throws for a text that is no token. */
export function behaviourOf(token: string): Behaviour {
  const name = /^tok_([a-z0-9_]+)(?:~.{0,200})?$/.exec(token)?.[1]
  const found = name === undefined ? undefined : named(name)
  if (!found) throw new PrimerError(400, 'InvalidPaymentInstrumentToken', 'Invalid payment instrument.')
  return found
}

function named(name: string): Behaviour | undefined {
  const decline = DECLINES[name]
  if (decline) return { ...approved, attempts: [decline] }
  const [, state, ms] = /^(pending|settling)(?:_([0-9]{1,10})ms)?$/.exec(name) ?? []
  if (state !== undefined) {
    const settles = ms === undefined ? {} : { settlesAfterMs: Number(ms) }
    return { ...approved, approved: state === 'pending' ? 'PENDING' : 'SETTLING', ...settles }
  }
  const fault = /^(refund_)?(drop_before|drop_after|late|slow)(_once)?(?:_([0-9]{1,6})ms)?$/.exec(name)
  if (fault) {
    const [, on, kind, once, wait = '0'] = fault
    return {
      ...approved,
      fault: { on: on ? 'refund' : 'charge', kind: kind!, ms: Number(wait), once: once !== undefined },
    }
  }
  return OTHERS[name]
}

const OTHERS: Record<string, Behaviour> = {
  visa: approved,
  authorized: { ...approved, approved: 'AUTHORIZED' },
  partial: { ...approved, approved: 'PARTIALLY_SETTLED' },
  fallback: { ...approved, attempts: [DECLINES['declined']!, null] },
  fallback_declined: { ...approved, attempts: [DECLINES['declined']!, DECLINES['insufficient_funds']!] },
  fallback_authorized: { attempts: [DECLINES['rejected']!, null], approved: 'AUTHORIZED' },
  needs_action: { ...approved, approved: 'PENDING', needsAction: true },
  timeout: { ...approved, attempts: [timedOut] },
  refund_pending: { ...approved, refund: 'pending' },
  refund_fails: { ...approved, refund: 'fails' },
  refund_fails_later: { ...approved, refund: 'fails_later' },
}
