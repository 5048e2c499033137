// tundish figures: what is sold, how far people come, and what subscriptions are worth, by day and dimension.
import type { Command } from 'commander'
import { addOperations } from './operations.ts'

export function register(program: Command): void {
  addOperations(program.command('figures').description('read or rebuild the figures of a project or an organization'))
}
