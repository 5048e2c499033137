// tundish order: custom charges, their timelines and refunds.
import type { Command } from 'commander'
import { addOperations } from './operations.ts'

export function register(program: Command): void {
  addOperations(program.command('order').description('custom charges, their timelines and refunds'))
}
