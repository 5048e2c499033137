// tundish refund: refunds whose outcome is not known.
import type { Command } from 'commander'
import { addOperations } from './operations.ts'

export function register(program: Command): void {
  addOperations(program.command('refund').description('refunds whose outcome is not known'))
}
