// Stripe's customers as profiles and billing customers.
import type { Stripe } from 'stripe'
import { EXTERNAL_ID_RULE, isExternalId } from '../../../core/records/import/types.ts'
import { type Line, recordId, type Target, textOr, time } from './convert.ts'
import { namesIn } from './names.ts'

export type AnyCustomer = Stripe.Customer | Stripe.DeletedCustomer

/** The profile and the billing customer of a Stripe customer. */
export function customerLines(customer: Stripe.Customer, target: Target): Line[] {
  const { id, created, email, phone, address, shipping, preferred_locales } = customer
  const profile = {
    id: recordId(id),
    created_at: time(created),
    email: textOr(email),
    phone: textOr(phone),
    country: textOr(address?.country) ?? textOr(shipping?.address?.country),
    locale: textOr(preferred_locales?.[0]),
  }
  return [
    { record: 'profile', data: profile },
    {
      record: 'customer',
      data: { external_id: externalIdOf(customer, target), email: profile.email, profile_id: profile.id },
      names: namesIn(target.metadata, customer),
      customer: id,
    },
  ]
}

/** A customer that was deleted at Stripe: only the id remains, and the time of the object that refers to it. */
export function deletedCustomerLines(id: string, seenAt: number): Line[] {
  const profile_id = recordId(id)
  return [
    { record: 'profile', data: { id: profile_id, created_at: time(seenAt) } },
    { record: 'customer', data: { external_id: id, profile_id }, customer: id },
  ]
}

/** The client's id of the customer from the metadata, if it can be one, or else Stripe's. */
export function externalIdOf(customer: AnyCustomer, target: Pick<Target, 'externalIdKey'>): string {
  const kept = keptId(customer, target)
  return kept && isExternalId(kept) ? kept : customer.id
}

/** The reason why the client's id in the metadata cannot be used; undefined if there is none, or it can. */
export function unusableId(customer: Stripe.Customer, target: Pick<Target, 'externalIdKey'>): string | undefined {
  const kept = keptId(customer, target)
  if (!kept || isExternalId(kept)) return undefined
  return `metadata.${target.externalIdKey} is no external_id, and Stripe's id was taken: it must have ${EXTERNAL_ID_RULE}`
}

const keptId = (customer: AnyCustomer, { externalIdKey }: Pick<Target, 'externalIdKey'>) =>
  externalIdKey === undefined || customer.deleted ? undefined : customer.metadata?.[externalIdKey]
