// A part of the crash matrix at the simulator, which charges in one step.
import { test } from 'node:test'
import { killSome } from './some.ts'

test('a process killed at any point leaves nothing that does not come right by itself', (t) => killSome(t, 'simulator'))
