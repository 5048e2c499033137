// What a kind of movement declares, so that one in progress is checked, settled, compared and resolved like any other.
import type { FastifyInstance } from 'fastify'
import type { Query } from '../../../lib/pg/types.ts'
import type {
  Authorized,
  Conflict,
  NotBegun,
  NotFound,
  Pending,
  Prepared,
  Refused,
  Settled,
  Unconfirmed,
  Unknown,
  Withheld,
} from '../../providers/outcomes.ts'
import type { Movement, Provider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import type { AtProvider } from '../ledger/orders.ts'
import type { MountContext } from '../route.ts'
import type { InProgress, Rows } from './in-progress.ts'
import type { Note } from './provider-calls.ts'

/** The outcomes that a provider may return for a movement that was begun. */
export type CallResult =
  | Settled
  | Authorized
  | Refused
  | Pending
  | Unknown
  | NotFound
  | Conflict
  | Prepared
  | Unconfirmed
  | Withheld

/** The provider's decision: a movement succeeded or failed, or the provider refuses it for good. */
export type Verdict = Settled | Refused

/** Whether a result is final. */
export function isVerdict<T extends { outcome: string }>(result: T): result is Extract<T, Verdict> {
  return ['succeeded', 'failed', 'refused'].includes(result.outcome)
}

/** How the provider's outcome differs from the request, so that an operator has to judge it. */
export type Mismatch = { mismatch: 'reference' | 'currency' }

/** How a movement's outcome is found at the provider, and settled. Methods, because a list holds kinds of different rows. */
export interface Checked<Row extends InProgress> {
  type: Movement['type']
  rows: Rows<Row>
  /** The ids by which a line of the log names it. */
  idsOf(row: Row): Record<string, string>
  lookUp(provider: Provider, row: Row, signal?: AbortSignal): ReturnType<Provider['lookUp']>
  /** Repeats the same call, which moves money once for its key: the only look-up that some providers have. */
  replay(provider: Provider, row: Row, signal?: AbortSignal): Promise<CallResult | NotBegun>
  /** Asks the provider for the outcome, and makes it refuse a movement that it does not know. */
  ask(context: BillingContext, provider: Provider, row: Row, signal?: AbortSignal): Promise<CallResult | NotBegun>
  /** Makes the provider refuse a payment that is prepared, or that it does not know. */
  refuse(context: BillingContext, provider: Provider, row: Row, signal?: AbortSignal): Promise<CallResult>
  /** A row whose key the provider has processed. */
  seen(row: Row, found: Withheld): Row
  /** Captures a payment that the bank has authorized. Present if the provider may authorize it. */
  capture?(context: BillingContext, provider: Provider, row: Row, handle: string): Promise<CallResult>
  settle(
    context: BillingContext,
    provider: Provider | undefined,
    row: Row,
    verdict: Verdict,
    how: { because?: string; note?: Note },
  ): Promise<Row | Mismatch | Unknown>
}

/** The effect of a movement at the provider, which belongs to a charge, on this database. */
export type Adoption =
  /** A row was made for it. */
  | 'adopted'
  /** Its row had succeeded, and it failed after all. */
  | 'failed_later'
  /** Its row says the same already, or it moved no money. */
  | 'known'
  /** Its row is in progress: it is settled by a status check, which asks the provider. */
  | 'in_progress'
  /** It may be one of ours in progress whose id at the provider is not known: that one is checked first. */
  | 'may_be_ours'
  /** Its row, amount or currency contradicts the provider: an operator must judge it. */
  | 'mismatch'

/** A kind of movement with what operators and the comparison with the provider need. */
export interface Kind<Row extends InProgress> extends Checked<Row> {
  /** Mounts its route of the billing API. */
  mount(app: FastifyInstance, context: MountContext): void
  /** In sentences: "order", "refund". */
  noun: string
  /** Our id of a row. */
  idOf(row: Row): string
  /** The provider's id of a row; null if it is not known. */
  handleOf(row: Row): string | null
  /** Whether one may end without having moved money or failed. */
  canBeCancelled: boolean
  /** The response of the API for a row. */
  responseOf(row: Row): unknown
  /** Those of a provider that moved money since an instant. */
  findSucceededSince(query: Query, at: AtProvider, since: string): Promise<Row[]>
  /** Whether the movements of a list that have no row here are stored before they are compared. */
  keepsLost: boolean
  /** Stores the provider's id of a row that has none: one in progress, or one that an operator has said to have succeeded. */
  rememberHandle?(query: Query, row: Row, handle: string): Promise<void>
  /** Cancels a payment that the provider has under the row's key, after the row has ended. */
  refuseLate?(context: BillingContext, provider: Provider, row: Row, handle: string): Promise<CallResult>
  /** For movements that belong to a charge and may be made at the provider. */
  ofCharge?: {
    /** The provider's id of the charge of a row. */
    idOf(row: Row): string | null
    /** Brings all of a charge up to date with the provider; undefined: no order here has the charge. */
    adopt(
      context: BillingContext,
      provider: Provider,
      at: AtProvider,
      chargeTransactionId: string,
    ): Promise<Adoption[] | undefined>
  }
}
