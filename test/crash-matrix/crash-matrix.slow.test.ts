// A part of the crash matrix at the simulator, which charges in one step.
import { test } from 'node:test'
import { killSome } from './some.ts'

test('all recovers by itself after a process is killed at any point', (t) => killSome(t, 'simulator'))
