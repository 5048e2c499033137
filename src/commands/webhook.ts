// tundish webhook: webhook endpoints of a project.
import type { Command } from 'commander'
import { addOperations } from './operations.ts'

export function register(program: Command): void {
  addOperations(program.command('webhook').description('webhook endpoints of a project'))
}
