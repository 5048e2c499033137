// tundish delivery: deliveries of events.
import type { Command } from 'commander'
import { addOperations } from './operations.ts'

export function register(program: Command): void {
  addOperations(program.command('delivery').description('deliveries of events'))
}
