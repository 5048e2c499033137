// tundish event: events of a project.
import type { Command } from 'commander'
import { addOperations } from './operations.ts'

export function register(program: Command): void {
  addOperations(program.command('event').description('events of a project'))
}
