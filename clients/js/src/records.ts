// The records of the API by name, and the filters of its lists, taken from the generated types.
import type { components, operations } from './schema.ts'

type Schemas = components['schemas']

export type Funnel = Schemas['Funnel']
export type Experiment = Schemas['Experiment']
export type Product = Schemas['Product']
export type Price = Schemas['Price']
export type Profile = Schemas['Profile']
export type Session = Schemas['Session']
export type SessionDetail = Schemas['SessionDetail']
export type SessionReplies = Schemas['SessionReplies']
export type ReplyDetail = Schemas['ReplyDetail']
export type Subscription = Schemas['Subscription']
export type SubscriptionDetail = Schemas['SubscriptionDetail']
export type Transaction = Schemas['Transaction']
export type TransactionExport = Schemas['TransactionExport']
export type CreditEntryExport = Schemas['CreditEntryExport']

/** A record for `ingest`: its kind and its fields. Only the fields that are given change, and `null` clears one. */
export type RecordToWrite = Schemas['RecordToWrite']

type Writable<T> = { [K in keyof T]?: T[K] | null | undefined }

/** A profile to write. A new one needs `created_at`. */
export interface ProfileToWrite
  extends Writable<Pick<Profile, 'email' | 'phone' | 'country' | 'locale' | 'funnel_id'>> {
  id: string
  created_at?: string | undefined
  updated_at?: string | undefined
  [field: string]: unknown
}

/** A session to write. A new one needs `created_at` and `profile_id`. */
export interface SessionToWrite {
  id: string
  created_at?: string | undefined
  updated_at?: string | undefined
  profile_id?: string | undefined
  funnel_id?: string | null | undefined
  funnel_version?: number | null | undefined
  experiment_id?: string | null | undefined
  locale?: string | null | undefined
  origin?: string | null | undefined
  user_agent?: string | null | undefined
  query_params?: object | undefined
  ip?: string | null | undefined
  country?: string | null | undefined
  city?: string | null | undefined
  [field: string]: unknown
}

/** The reply of a session to an element of a screen. */
export interface ReplyToWrite {
  session_id: string
  element: { id: string; type: string; custom_id?: string | null | undefined }
  screen: { id: string; index: number; custom_id?: string | null | undefined }
  value: string | string[] | null
}

/** Amounts of money as text, with the digits the server sent: a float would lose some. */
export type Exact<T> = {
  [K in keyof T]: K extends
    | 'amount'
    | 'amount_usd'
    | 'amount_refunded'
    | 'balance'
    | 'held'
    | 'available'
    | 'below'
    | 'grants'
    ? string | Extract<T[K], null>
    : T[K] extends (infer Item)[]
      ? Exact<Item>[]
      : T[K]
}

export type OneOffCharge = Schemas['OneOffChargeOut']
export type Refund = Exact<Schemas['RefundOut']>
export type MyAssets = Exact<Schemas['MyAssets']>
export type CreditsSpend = Exact<Schemas['CreditsSpendOut']>
export type CreditsHold = Exact<Schemas['CreditsHoldOut']>
export type CreditsCapture = Exact<Schemas['CreditsCaptureOut']>
export type CreditsRelease = Exact<Schemas['CreditsReleaseOut']>
export type CreditsBalance = Exact<Schemas['CreditsBalance']>
export type CreditsGrant = Exact<Schemas['CreditsGrantOut']>
export type CreditsAdjust = Exact<Schemas['CreditsAdjustOut']>
export type CreditEntry = Exact<Schemas['CreditEntry']>
export type TopUpRule = Exact<Schemas['TopUpRule']>
export type Consumable = Exact<Schemas['ListedConsumable']>
export type SettledRefund = Exact<Schemas['ListedRefund']>
export type Dispute = Exact<Schemas['ListedDispute']>
export type ReportTransaction = Exact<Schemas['ReportTransaction']>

/** The query of an operation. */
type Query<Name extends keyof operations> = NonNullable<operations[Name]['parameters']['query']>

/** `filter[status]` as `status`, `filter[updated_at.from]` as `updatedFrom`. */
type FilterName<Key> = Key extends 'filter[updated_at.from]'
  ? 'updatedFrom'
  : Key extends 'filter[updated_at.to]'
    ? 'updatedTo'
    : Key extends `filter[${infer Name}]`
      ? Name
      : never

/** The filters of a list, and how many items a page holds. */
export type ListOptions<Name extends keyof operations> = {
  [Key in keyof Query<Name> as FilterName<Key>]?: Query<Name>[Key] | undefined
} & { limit?: number | undefined; signal?: AbortSignal | undefined }

/** What an export contains, by list. */
export interface Exported {
  funnels: Funnel
  experiments: Experiment
  products: Product
  profiles: Profile
  sessions: Session
  replies: SessionReplies
  subscriptions: SubscriptionDetail
  transactions: TransactionExport
  /** The entries of the customers' credits. */
  credit_entries: CreditEntryExport
}
