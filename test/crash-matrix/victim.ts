// The interface of a victim: the objects on which a piece of work of the crash matrix runs.
import type { Installation } from '../operations/backup/installations.ts'
import type { Billing, Organization } from '../support/billing.ts'
import type { Arrival } from '../support/receiver.ts'
import type { StripeSimulator } from '../support/simulators.ts'
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
  /** Checks what the killed process has left, and ends its leases. */
  afterKill?(): Promise<void>
  /** Checks the state after another process has done the work. */
  checkResult(): Promise<void>
  remove?(): Promise<void>
}

/** A piece of work, and how to create a victim for it. */
export interface Row {
  title: string
  work: string
  make(ground: Ground): Promise<Victim>
}
