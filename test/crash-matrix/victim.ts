// What a work of the crash matrix is done on.
import type { Installation } from '../support/backup.ts'
import type { Billing, Organization } from '../support/billing.ts'
import type { Arrival } from '../support/receiver.ts'
import type { StripeSimulator } from '../support/stripe-simulator.ts'
import type { Subject } from './works.ts'

export interface Ground {
  billing: Billing
  shop: Organization
  receiver: { url: string; arrivals: Arrival[] }
  /** Stripe, with an account to import. */
  stripe: StripeSimulator
  /** An installation with a backup of it. */
  source: Installation
  backup: string
}

export interface Victim {
  subject: Subject
  /** What a process that was killed may leave. */
  left?(): Promise<void>
  /** What holds when another process has done the work. */
  done(): Promise<void>
  remove?(): Promise<void>
}

/** The work, and how to make a victim of it. */
export interface Row {
  title: string
  work: string
  make(ground: Ground): Promise<Victim>
}
