// tundish merchant-account: merchant accounts of an organization.
import type { Command } from 'commander'
import { addOperations } from './operations.ts'

export function register(program: Command): void {
  addOperations(program.command('merchant-account').description('merchant accounts of an organization'))
}
