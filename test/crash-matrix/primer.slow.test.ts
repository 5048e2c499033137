// A part of the crash matrix at Primer's API: a process is killed around the charge, its capture, and a refund.
import { test } from 'node:test'
import { killSome } from './some.ts'

test('all is settled after a process is killed at any point of a charge or refund through Primer', (t) =>
  killSome(t, 'primer'))
