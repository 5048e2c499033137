// @tundish/client: what it exports.
import * as standard from 'standardwebhooks'
import { unwrap } from './webhooks.ts'

export type { Billing, ChargeOptions, RefundOptions, ReportOptions, SettleOptions } from './billing.ts'
export type { Change, ChangePage, ChangePagesOptions, ChangesOptions, End, Void } from './changes.ts'
export { Tundish, type TundishOptions } from './client.ts'
export type {
  AdjustOptions,
  CaptureOptions,
  Credits,
  EntriesOptions,
  GrantOptions,
  HoldOptions,
  SpendOptions,
  TopUpOptions,
} from './credits.ts'
export { TundishConnectionError, TundishError } from './errors.ts'
export type { IngestOptions, RejectedRecord } from './ingest.ts'
export type { List, Page } from './lists.ts'
export type * from './records.ts'
export type { components, operations, paths } from './schema.ts'
export type { WebhookEvent } from './webhooks.ts'
export const webhooks = { unwrap }
/** Thrown by `unwrap`. */
export const { WebhookVerificationError } = standard
export type WebhookVerificationError = standard.WebhookVerificationError
