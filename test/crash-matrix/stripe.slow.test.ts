// A part of the crash matrix at Stripe's API: a process is killed between each two steps of a charge, and of a refund.
import { test } from 'node:test'
import { killSome } from './some.ts'

test('a process killed at any point of a charge or refund through Stripe leaves nothing that does not come right', (t) =>
  killSome(t, 'stripe'))
