// What surprised at Stripe and Primer, as a list of checks: the test of a new adapter has a check for each, or a sentence that says why
// it cannot happen there.
import { test } from 'node:test'

export const SURPRISES = {
  withheld: 'A known key is answered without the result of the first call.',
  forgotten: 'A key is forgotten, and the same request would charge again.',
  late: 'A payment is missing in the list for some time after it was made.',
  twice: 'Two payments exist under one key.',
  reopened: 'A declined payment could be confirmed again later.',
  authentication: 'The customer would have to authenticate, and is not present.',
  authorized: 'The money is only reserved, and moves with a second call.',
  partial: 'Less is captured than was asked for.',
  attempts: 'One payment has several attempts, at several processors.',
  units: 'Amounts are not in minor units of ISO 4217.',
  newState: 'An object has a state that the reference does not name.',
  refundFails: 'A refund fails after it had succeeded.',
  refundUnnamed: 'A refund has no id of its own, or none of our fields.',
  cleared: "Our metadata was removed in the provider's dashboard.",
  otherAccount: 'A payment of ours is not found, because the key belongs to another account or mode.',
  longIds: 'Our ids are longer than the provider allows.',
  oddBody: 'A response is 200 and not an object that can be read.',
} as const

type Answers = Record<keyof typeof SURPRISES, (() => Promise<void>) | string>

/** Declares a test for each surprise; one with a sentence instead of a check is skipped, with the sentence. */
export function providerSurprises(name: string, responses: Answers): void {
  for (const [key, surprise] of Object.entries(SURPRISES)) {
    const response = responses[key as keyof typeof SURPRISES]
    if (typeof response === 'string') test(`${name}: ${surprise}`, { skip: response })
    else test(`${name}: ${surprise}`, response)
  }
}
