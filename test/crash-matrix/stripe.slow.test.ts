// A part of the crash matrix at Stripe's API: a process is killed between each two steps of a charge, and of a refund.
import { test } from 'node:test'
import { killSome } from './some.ts'

test('all is settled after a process is killed at any point of a charge or refund through Stripe', (t) =>
  killSome(t, 'stripe'))
